"""Operators of the server: who they are, what they did, and what they look at."""
