"""Proofs of an identity: what clients send, how it is checked, and the limits on wrong ones.

Clients get one error text for all reasons. The trace (`trace.py`) records what was seen in a refused proof, and
what would be allowed. A trace is stored in a row after the failure, up to a rate for each client IP address. The
steps of the trace only use what the statements of the login read anyway, so that the duration of a login does not
depend on the reason of its failure. Only the columns of the row identify the user, in the form that identities
have, because the erasure of a user finds the row by these columns.

A failed login is counted before its password is checked (`throttle.py`), by one script for all its rates, because
otherwise concurrent guesses could exceed the limits. The count is taken back if the password is right. The networks
from which a user has logged in are rows, so that losing Valkey locks nobody out.
"""
