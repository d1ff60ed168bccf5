"""The emulation of payment platforms, and the frame of the pages on which a payer approves."""
