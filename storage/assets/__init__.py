"""What users own: the entries of the ledger, and what follows from them."""
