"""The emulation of Stripe: its API, its webhooks, and the pages on which test cards pay."""
