"""The identities of a user: which are bound, changed and unbound, and their profiles.

The last login method cannot be removed, and the configs of the app decide which one is the last
(`login_methods.py`). Another identity counts only if the user could log in with it at once: one of a third-party
platform that the app offers, a phone number if the app sends text messages, a name with a password, or an email
address with a password or, if the address is proven, with codes.
"""
