"""Streams: their input while it is made, their events, and resuming them after lost connections."""
