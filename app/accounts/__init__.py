"""Accounts: sign-in, identities, email addresses, phone numbers, passwords, sessions, and how users leave.

`proofs` are what clients send to prove an identity. `sign_in` and `identities` use them for logins and for
bindings. `email`, `phone` and `passwords` are the methods of this server itself. `mails` writes emails about
accounts and serves the pages to which they lead. `leaving` is deactivation, export and erasure.
"""
