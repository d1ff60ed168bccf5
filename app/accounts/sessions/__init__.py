"""Sessions of users, and the lock of an account that is changed."""
