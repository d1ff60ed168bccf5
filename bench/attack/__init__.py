"""Attacks on a server: slow, large, malformed and endless requests."""
