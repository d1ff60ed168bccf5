"""What is kept about a user over all areas: its export, its deletion, and its freeze until then.

What is deleted and what is kept are tables (`erasures.py`): `DELETED` in the transaction of the deactivation, whose
counts the receipt shows, and `KEPT`. A test fails for a table of users that neither names. A job deletes
conversations and files, which may be many. It runs a second time after the longest possible stream has ended,
because a stream that began before the deactivation may still store something. Only then does the receipt say that
the erasure is complete.
"""
