"""Clients of vendors, as the configs of an app describe them.

A draft of a config is judged as if it were written before it is tried (`trials.py`): the trial uses the stored
accounts and their gates, and nothing is stored.
"""
