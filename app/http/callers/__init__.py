"""Callers: sessions, signatures, server tokens and operators, and their rate limits.

Responses of limited endpoints say how many calls remain (`RateLimit-Policy` and `RateLimit`). Repeats, and calls
that an earlier check refuses, are not counted, but their responses have these headers too: `report` in `limits.py`
reads the counts. A response has no count if the caller is not known yet (401, 403, a wrong version or app), and
none of a rate per value of a field if a field is invalid. An endpoint that counts only some calls in its handler,
such as a login that creates a user, reports the rates that it has counted.
"""
