"""Leaderboards: uploads, queries, the end of periods, and rewards."""
