"""Accounts: sign-in, identities, email addresses, phone numbers, passwords, sessions, and how users leave.

`proofs` checks what clients send to prove an identity. `sign_in` and `identities` use it for logins and bindings.
`email`, `phone` and `passwords` are this server's own login methods. `mails` writes emails about accounts and
serves the pages that they link to. `leaving` covers deactivation, export and erasure.
"""
