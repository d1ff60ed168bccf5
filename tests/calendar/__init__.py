"""Dates in tests: the clock that they read, hard instants, and the run of all that dates influence."""
