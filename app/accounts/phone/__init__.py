"""Phone numbers: codes for them, and the messages that send these."""
