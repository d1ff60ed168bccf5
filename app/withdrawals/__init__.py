"""Withdrawals: their requests, and their payment through PayPal.

A withdrawal is submitted under one id (`payouts.py`), which PayPal remembers for 30 days. While its result is
unknown, it is read back, and never submitted under another id or to another account. If the account that was asked
is no longer configured, the result is left to operators. Reservations, payments, voids and returns are entries that
are only added (`storage/withdrawals/withdrawals.py`). The start of a withdrawal takes the same lock of the user as
a deactivation, so only one of them happens.
"""
