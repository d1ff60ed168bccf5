"""Operators of the server: their accounts, their changes, and the data for their overview.

Operators are not cached: each call of the admin API reads them from PostgreSQL (`operators.py`). So every process
refuses a removed operator immediately, without Valkey. This is affordable, because the admin API is called rarely.
Only guesses of tokens are counted in Valkey, before their result is known. To recognize them without a query for
each, a process reads the digests of all tokens, at most once per second (`tokens.py`).

Changes by operators are recorded where they are made. `Edit` (configs), `operators.py` and `storage/jobs/jobs.py`
take the `Origin` of a change and write its row of `audit` in the same transaction, instead of leaving this to each
handler and command. Triggers refuse changes of the rows.
"""
