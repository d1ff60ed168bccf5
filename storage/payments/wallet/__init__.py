"""Payments with a wallet (§2.9): orders, subscriptions, their upgrades, and refunds."""
