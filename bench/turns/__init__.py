"""Measure the detection of the end of a turn: what it costs, and how often it is wrong."""
