"""Payments: rows of cards and the wallet, what users have subscribed to with either, and mismatches."""
