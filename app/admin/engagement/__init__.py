"""Leaderboards, emails of strategies, and suppressed addresses."""
