"""How users leave: deactivation, the export of their data, and its deletion.

A freeze is a state of the user's row (`deactivation.py`). Its steps, logins and jobs lock that row, so one of them
wins, and no concurrent login leaves a usable session. Cached sessions contain the state. A change replaces the
cached copies with tombstones, so that all processes read the rows. An entry of `RESTRICTIONS`
(`storage/userdata/freezes.py`) is a reason that forbids a deactivation. Code that creates such a reason locks the
same row.

One job per user ends a freeze. Its key is the user. The job checks the row and the app's clock, not its message, so
a recovered account is not deactivated, and neither is one that was frozen again, before its time.

Receipts of a deletion are signed when they are read (`app/receipts.py`), because revocations at sign-in platforms
may take long. The key pair is derived from the master key. The tokens to revoke are encrypted in rows, not in jobs,
which operators can drop.
"""
