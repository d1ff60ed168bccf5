"""Clients of vendors, as the configs of an app describe them.

Before the draft of a config is tried (`trials.py`), it is checked like a config that is written. The trial uses the
stored accounts and their gates, and stores nothing.
"""
