"""Stripe: its calls, objects, errors and the signature of its webhooks."""
