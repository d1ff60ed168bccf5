"""Withdrawals: their rows, lists, and what differs from the ledger."""
