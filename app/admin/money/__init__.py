"""Admin API of money: orders, the ledger, withdrawals, and mismatches with platforms."""
