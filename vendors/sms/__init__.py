"""Text messages: the webhook that sends them, and the inbox of development servers."""
