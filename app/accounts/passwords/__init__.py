"""Passwords, their rules, and the platform `name_password`.

Password hashes are computed in threads (`app/password_hashing.py`), one per core of the process, with a lower
priority than the event loop. A cancelled caller leaves the queue. A login of an unknown user computes a hash as a
login with a wrong password does, so that both take the same time. A login locks the hash that it has checked, so
that no session begins with a password that has been changed in between.

The list of common passwords comes from zxcvbn. Its estimate of strength is not used: it holds the GIL for up to 85
ms, needs 12 MiB per process, and refuses passwords for reasons that an error message cannot explain in a sentence.
"""
