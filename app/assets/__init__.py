"""What users own, and share groups: their endpoints, and what the purchase of a product grants."""
