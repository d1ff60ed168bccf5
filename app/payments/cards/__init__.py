"""Payments by card: orders, subscriptions, their periods, refunds and disputes."""
