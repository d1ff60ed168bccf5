"""Leaderboards: uploads, queries, closing of periods, and rewards."""
