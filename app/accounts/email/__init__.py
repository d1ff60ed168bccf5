"""Email addresses: logins with them, their verification, and new passwords by email.

The account of a forgotten password is looked up by a job (`reset.py`), so that neither the response nor its time
reveals whether a user has the address.
"""
