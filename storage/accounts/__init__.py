"""Users: their identities, addresses, passwords, codes and sessions.

An identity belongs to one user, and a user has at most one identity of each platform. Unique indexes enforce this,
and `link` in `identities.py` returns which of them was violated. Every transaction that changes data that depends
on a user's identities, including a login, locks the row of the user first (`users.py`). So no session of an unbound
identity remains, and these transactions do not deadlock.

Sessions end in one place (`end` in `sessions.py`), with their rows, their cached copies, and their running streams.
Valkey announces the end before the commit, and PostgreSQL at the commit (`storage/postgres/notifications.py`). So
other processes refuse the session within a second, even if its process cannot reach Valkey, or dies. Each process
checks its connection for PostgreSQL's announcements four times a second. After an interruption, sessions that were
cached before are not trusted, and their rows are read. A process that misses the announcement does not accept the
session for long either, because it uses a session from Valkey for at most half a second.

A code is checked in two steps (`codes.py`). `check` compares it and counts a wrong one, in a transaction of its own
that locks the codes of the target. `use_code` decides, in the transaction of the login, which of several requests
with the right code wins. Wrong codes are counted by network: otherwise, whoever knows an address could use up all
tries of its owner. Rows contain an HMAC of the code, whose key is derived from the master key. A new master key
invalidates the codes that were sent before.

The address with which a user logs in is an identity of the platform `email`; `trust` says whether it is proven, and
`weakly_proven` whether only its link was opened, which programs that scan emails do too. A new
address that is not proven yet is a row of `pending_emails` (`emails.py`). It cannot be used to log in, and does not
reserve the address.
"""
