"""The identities of a user: binding, changing and unbinding them, and their profiles.

The last login method cannot be removed, and the configs of the app decide which one is the last
(`login_methods.py`). Another identity counts only if the user could log in with it immediately. Such identities
are: an identity of a third-party platform that the app offers; a phone number, if the app sends text messages; a
name with a password; an email address with a password; a proven email address, if the app allows logins with codes.
"""
