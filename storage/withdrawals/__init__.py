"""Withdrawals: their rows, lists and results."""
