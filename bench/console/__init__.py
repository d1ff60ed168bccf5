"""Measure the lists of the admin API, and the price of an open overview, with the data of a large deployment.

The rows are generated in PostgreSQL (`rows.py`, `filling.py`), the configs are written like those of an operator
(`configs.py`). The operations are found in the route table (`operations.py`): each GET operation whose reply has a
list is called with each of its filters and cursors, with values that many rows have, few rows, or none
(`values.py`). An operation with a parameter for which there are no values is an error, so that no new list is
forgotten. A verdict counts the time of the server, which its access log states.
"""
