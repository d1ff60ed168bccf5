"""Emails: their content, mail servers, and the inbox of development servers.

Whose fault a refusal is decides what follows (`refusals.py`). Everybody can name recipients, and put words into
emails, that a mail server refuses. If these refusals counted as failures of the account, a dozen of them would open
its breaker, and nobody would get a code. So they end or delay one email, and a call that gets one counts as a
success.

Headers are written by `streams/wire/mailbox.py` and sent as they are. Python's email package reads a header when it
is set and writes what it has read: it decodes encoded words in a variable, and version 3.11 breaks long names with
commas or colons into several addresses.
"""
