"""Hosts of models: predictions and images, their files, webhooks and refusals.

Files are read only from addresses of their host, and without the account's key (`files.py`): from the paths for
files at the account's address, and from the hosts that the protocol names. Any other URL in an output stays text,
so that a model cannot make the server call an arbitrary address.

Images are copied while they arrive (`downloads.py`), and their first bytes determine their type. The host chooses
their address, so connections are made only to public addresses and to that of the account's `base_url`.
"""
