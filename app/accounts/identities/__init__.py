"""The identities of a user: which are bound, changed and unbound, and their profiles."""
