"""Sessions of users, and the lock of an account that is changed.

A change of an account checks its session twice: before the body is read, and again once the row of the user is
locked (`caller_lock.py`), because a client may hold back the end of a body for 30 s. Otherwise, somebody who has
signed up with another person's address could link an identity after the owner of the address has ended all
sessions.
"""
