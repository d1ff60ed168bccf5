"""Payments by wallet: orders, subscriptions, upgrades, and what the platform reports of them."""
