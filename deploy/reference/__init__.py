"""The reference in docs/reference, which is generated from models and their docstrings: `make reference`.

`tests/code/test_reference.py` compares the pages with the code, so they cannot be out of date.
"""
