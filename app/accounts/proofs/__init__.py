"""Proofs of an identity: what clients send, how it is checked, and the limits on wrong ones.

Clients get one error text for all reasons. The trace (`trace.py`) records what was seen in a refused proof, and
what would be allowed. A trace is stored in a row after the failure, up to a rate for each client IP address. The
steps of the trace only use what the statements of the login read anyway, so that the duration of a login does not
depend on the reason of its failure. Only the columns of the row identify the user, in the form that identities
have, because the erasure of a user finds the row by these columns.

A guess is a password or a code. Its outcome is counted, by one script for all rates, before the client learns it,
and only wrong ones are counted (`throttle.py`). So a client that sends many guesses at once gets no more answers
than one that waits, and no right one is refused for others that are being checked. Counting before the check would
refuse right ones: of thirty right passwords at once, twenty got 429. The price is that all guesses that arrive
before the limit is reached are checked. For passwords, the queue of the hashes bounds their number. The networks
from which a user has logged in are rows, so that losing Valkey locks nobody out. Those that have entered wrong
codes are in the row of the code, and are deleted with it.

Operators try a draft of a sign-in platform with a proof (`app/trials`). It is checked by the same function as in a
login (`check_proof`), around which a login counts refusals and uses up signatures.

Everybody can use up the emails that may be sent to an address in a day. So a sign-up or a bind that would send a
link succeeds without it, and says when the link may be requested (`code_sending.py`).
"""
