"""Payment platforms: PayPal and Stripe."""
