"""Streams for an hour while stores become unavailable."""
