"""Passwords, their rules, and the platform `name_password`.

Hashes of passwords are computed in threads (`app/password_hashing.py`), as many at once as the process has cores,
and with a lower priority than the event loop. A caller that is cancelled leaves the queue. A login of an unknown
user computes the same hash as one with a wrong password, so that both take the same time. A login locks the hash
that it has checked, so that no session begins with a password that was changed meanwhile.

Common passwords are a list (`common_passwords/passwords.json`), which is taken from zxcvbn. Its estimate of
strength is not used: it holds the GIL for up to 85 ms, needs 12 MiB per process, and refuses passwords for reasons
that an error message cannot explain in a sentence.
"""
