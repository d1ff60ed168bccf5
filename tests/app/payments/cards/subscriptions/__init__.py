"""Subscriptions with a card."""
