"""Hosts of models: predictions and images, their files, webhooks and refusals.

Files of hosts are read from the host's addresses only (`files.py`): the paths of files at that of the account, and
the hosts that the protocol names, without the account's key. Any other URL in an output stays text, so that a model
cannot make the server call anything.

Images are copied while they arrive (`downloads.py`), and their type is the one that their first bytes show. The
host names their address, so only public addresses are connected to, and that of the account's `base_url`.
"""
