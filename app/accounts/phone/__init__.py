"""Phone numbers: their codes, and the messages that contain them.

Jobs send text messages (`sms.py`). The content is encrypted in the job, because operators can read held jobs. The
jobs of a user are found and deleted like those of emails (`storage/mail/__init__.py`).
"""
