"""PostgreSQL: the pool of connections, causes of its errors, notifications and migrations.

Functions that execute SQL have the same form. They take the connection, then the app, then the user. All other
parameters are keyword-only. Columns of the type `jsonb` take and return Python objects (`_set_codecs` in
`database.py`). A violated unique constraint is a `DuplicateRow` that names it; `on_conflict` turns it into the
error for the client. New tables name the user `uid` and times `…_at`.

Connections are passed directly from one user to the next (`pool.py`), and go back to asyncpg's pool only if they
were lost or may be in the middle of a statement. They are passed on without a reset, so statements must not change
their state: settings and advisory locks must end with the transaction. `tests/connections.py` checks this after
each test, and for a server that a module shares at the end of the module.

If `DATABASE_DIRECT_URL` is set, a pooler in transaction mode may be in between. The variable decides, not a probe:
it is needed in any case, and a connection cannot tell what a pooler will do with its next transaction.
Statements are then not kept prepared, which costs a round trip and the parsing of each. Without a pooler nothing
changes. What needs a session uses the direct URL: `notifications.py`, `migrate.py`, and the worker's procrastinate.

A connection to a server that refuses writes is closed, with all others of its pool, because it may be that of a
former primary. `hosts.py` tries the hosts of a URL, and `reads.py` decides whether a replica executes a read.

`/readyz` probes whether PostgreSQL accepts writes by making it write a temporary file, at most every ten seconds.
Small writes succeed on a full disk, and a temporary table would leave dead rows in the catalog.
"""
