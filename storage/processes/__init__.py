"""Processes of the server: which run, and calls from one to another."""
