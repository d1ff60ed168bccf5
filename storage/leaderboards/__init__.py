"""Leaderboards: scores, periods, and the index of each board in Valkey."""
