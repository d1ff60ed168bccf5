"""The reference in docs/reference, which is generated from models and their docstrings: `make reference`.

A page has what the code has, so it cannot be out of date: `tests/code/test_reference.py` compares the files with
it.
"""
