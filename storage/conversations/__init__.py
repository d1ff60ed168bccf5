"""Conversations: their turns, the logs of their streams, and stored speech."""
