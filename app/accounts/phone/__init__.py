"""Phone numbers: codes for them, and the messages that send these.

Text messages are jobs (`sms.py`). Their content is encrypted in the job, because operators can read jobs that are
held. The jobs of a user are found and deleted like those of emails (`storage/mail/__init__.py`).
"""
