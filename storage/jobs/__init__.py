"""Jobs, and what is received or answered only once."""
