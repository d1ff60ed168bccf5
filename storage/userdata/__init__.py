"""The data about a user in all areas: its export, its deletion, and the freeze before the deletion.

One table (`USER_TABLES` in `tables.py`) says what is exported, deleted, kept, and deleted by age. A test fails if a
table of users has no entry. Rows are deleted in the transaction of the deactivation, and the receipt shows their
counts. A job deletes conversations and files, of which there may be many. It runs a second time after the longest
possible stream has ended, because a stream that began before the deactivation may still store data. Only then does
the receipt report a complete erasure.
"""
