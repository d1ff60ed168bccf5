"""PayPal: its calls, objects, errors and webhooks."""
