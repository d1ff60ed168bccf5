"""Operators of the server: who they are, what they did, and what they look at.

Operators are read from PostgreSQL at each call of the admin API (`operators.py`), not cached. So a removed operator
is refused by every process immediately, and Valkey is not involved. The admin API is called rarely. Only guesses
are counted in Valkey, before their result is known. To tell them apart without a query for each, a process reads
the digests of all tokens, at most once per second (`tokens.py`).

Changes by operators are recorded where they are made. `Edit` (configs), `operators.py` and `storage/jobs/jobs.py`
take the `Origin` of a change and write its row of `audit` in the same transaction, instead of leaving this to each
handler and command. Triggers refuse changes of the rows.
"""
