"""The emulation of PayPal: its API, its webhooks, and the pages on which a payer approves."""
