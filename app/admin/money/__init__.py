"""Orders, the ledger, withdrawals, and what differs between them and the platforms."""
