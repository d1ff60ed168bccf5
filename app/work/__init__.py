"""The worker process: jobs and their attempts, events to sinks, and deletion of what endpoints leave behind."""
