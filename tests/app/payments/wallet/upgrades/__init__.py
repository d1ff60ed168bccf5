"""Upgrades of subscriptions by wallet, and plans that were changed at the platform."""
