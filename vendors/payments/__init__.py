"""Payment platforms: PayPal and Stripe, their calls, objects, errors and webhooks."""
