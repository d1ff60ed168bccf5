"""Users: their identities, addresses, passwords, codes and sessions.

An identity belongs to one user, and a user has at most one identity of each platform: unique indexes decide this,
and `link` in `identities.py` returns which of them was violated. Every transaction that changes data that depends
on a user's identities locks the row of the user first (`users.py`), logins included. So no session of an unbound
identity is left, and no two of these transactions deadlock.

Sessions end in one place (`end` in `sessions.py`): their rows, their cached copies, and their running streams.
Valkey announces the end before the commit, and PostgreSQL with it (`storage/postgres/notifications.py`). So other
processes refuse the session within a second even if its process cannot reach Valkey, or dies. Each process checks
its connection to PostgreSQL's announcements four times a second. If that fails, or begins again, cached sessions
from before are not trusted: their rows are read. A process that hears nothing of the end does not accept the
session for long either, because it uses what it has read from Valkey for at most half a second.

A code is checked in two steps (`codes.py`). `check` counts the try, in a transaction of its own. `use` decides in
the transaction of the login which of several requests with the right code wins. Rows contain an HMAC of the code,
whose key is derived from the master key. A new master key makes codes invalid that were sent before.

An address waits until it is proven (`emails.py`). The address with which a user logs in is an identity of the
platform `email`; `trust` says whether it is proven. A new address that is not proven yet is a row of
`pending_emails`. It cannot be used to log in, and does not reserve the address.
"""
