"""What is kept about a user over all areas: its export, its deletion, and its freeze until then.

What is exported, deleted, kept, and deleted by age is one table (`USER_TABLES` in `tables.py`). A test fails for a
table of users without an entry. Rows are deleted in the transaction of the deactivation, and the receipt shows
their counts. A job deletes conversations and files, which may be many. It runs a second time after the longest
possible stream has ended, because a stream that began before the deactivation may still store something. Only then
does the receipt say that the erasure is complete.
"""
