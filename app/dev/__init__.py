"""Endpoints that only development servers have: the sandbox, the inbox, and the clock of an app."""
