"""The admin API: configs, operators, jobs, users, money and what runs, for the console and for programs.

Everything that operators search and list has an index, and pages continue after the last id. A search for a user
asks each table that has an id or an address of the same text (`storage/accounts/user_search.py`). The history of a
user merges the newest rows of all tables (`storage/accounts/user_history.py`). An order says what has become of it
by its status, its entries in the ledger, its mismatches and its webhooks (`money/order_verdicts.py`).
"""
