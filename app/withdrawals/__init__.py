"""Withdrawals: the request of a user's balance, and its payment through PayPal.

A withdrawal is submitted under one id (`payouts.py`), which PayPal remembers for 30 days. A result that is unknown
is read back, and never submitted under another id, nor to another account. If the account that was asked is no
longer configured, the result is left to operators. What was reserved, paid, void or returned are entries that are
only added (`storage/withdrawals/withdrawals.py`). The start of a withdrawal takes the same lock of the user as a
deactivation, so only one of them happens.
"""
