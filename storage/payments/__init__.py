"""Payments: rows of cards and the wallet, the end of subscriptions of both, and mismatches with platforms."""
