"""The admin API: configs, operators, jobs, users, money and running streams, for the console and for programs.

All searches and lists use an index, and pages continue after the last id. A search for a user looks up the text in
each table with ids or addresses (`storage/accounts/user_search.py`). The history of a user merges the newest rows
of all tables (`storage/accounts/user_history.py`). The verdict on an order follows from its status, its ledger
entries, its mismatches and its webhooks (`money/order_verdicts.py`).

The overview adds up what all processes publish in Valkey, and begins with what needs attention (`attention.py`).
What it reads from PostgreSQL is kept for ten seconds per process, and longer if reading it takes more than 1% of
that time (`app/observing/stored_figures.py`), so an overview that stays open costs little.
"""
