"""Images that a host generates for users.

The row of an image task is stored before its host is called (`images.py`), together with the use of the quota and a
job. The host has no idempotency keys, so it is called once. If the host refuses the task or does not answer, the
task is deleted and its quota is returned. If the process dies in between, the job finds the task without the host's
id after a minute, and marks it as failed.

The secret of a task's webhook names the task (`tasks.py`). Thus a webhook finds the task even if the host's answer,
and with it the host's id, was lost. The content of the webhook is not used: the task is read from the host.
"""
