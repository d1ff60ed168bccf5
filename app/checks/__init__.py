"""Checks of configs when they are written, beyond the models of their kinds."""
