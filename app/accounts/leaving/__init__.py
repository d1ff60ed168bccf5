"""How users leave: deactivation, the export of their data, and its deletion.

A freeze is a state of the user's row (`deactivation.py`). Its steps, logins and jobs lock that row, so they run one
after another, and no concurrent login leaves a usable session. Cached sessions contain the state. A change replaces
the cached copies with tombstones, so that all processes read the rows. A `Restriction` of a
table (`storage/userdata/tables.py`) is a reason that forbids a deactivation. Code that creates such a reason locks
the same row.

One job per user ends a freeze. Its key is the user. The job checks the row and the app's clock, not its message. So
it does not deactivate a recovered account, and it does not deactivate an account that was frozen again before the
new freeze ends.

Receipts of a deletion are signed when they are read (`app/receipts.py`), because revocations at sign-in platforms
may take long. The key pair is derived from the master key. The tokens to revoke are encrypted in rows, not in jobs,
which operators can drop.
"""
