"""Calculates what a number of daily users needs, from the tables of the guides that measured runs have written.

`figures.py` reads those tables. `assumptions.py` has what a reader can change. `needs.py` calculates what is
needed, and compares it with what one server can do. Nothing is measured here.
"""
