"""The emulation of payment platforms, one module each, and the pages on which a payer approves."""
