"""Clients of AI vendors and other platforms, fallback between them, and the engines of this machine.

`catalog.py` has the platforms with their capabilities, and `protocols.py` the interfaces of their clients.
"""
