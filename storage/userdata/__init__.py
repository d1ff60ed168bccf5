"""What is kept about a user over all areas: its export, its deletion, and its freeze until then."""
