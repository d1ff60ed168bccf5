"""The HTTP interface, the worker, the command line, settings and the life of server processes.

The modules directly in this folder are the wiring (`main.py`, `routes.py`, `webhooks.py`, `services.py`,
`stores.py`, `settings.py`) and the rules that several areas share, because areas do not import each other: states
of accounts, receipts, templates of emails.

All long-lived objects are created by `open_services()` in one `AsyncExitStack`, which closes them in reverse order.
Thus one page shows all that a process holds, and a missing object is a type error.
"""
