"""Conversations, speech, pronunciation and images.

An image task is a row before its host is asked (`images.py`), stored with the use of the quota and with a job. The
host has no idempotency keys, so it is asked once. A task that the host refuses, or does not answer, is deleted
again, and its quota is given back. If the process dies in between, the job finds a task without the host's id after
a minute, and fails it.

The secret of a task's webhook names the task (`image_tasks.py`). So a webhook finds the task even if the host's
answer, and with it the host's id, was lost. The content of the webhook is not used: the task is read from the host.
"""
