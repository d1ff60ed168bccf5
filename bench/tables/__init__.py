"""Measure the tables that grow for years: bytes a row, and what the statements of requests read.

The rows are generated in PostgreSQL (`filling.py`), in two steps. The statements are those that the functions of
`storage` execute (`statements.py`): `auto_explain` reports the plan of each with the buffers that it has used
(`plans.py`), after a tenth of the rows and after all of them. A statement that reads more buffers the second time
scans. `growth.py` calculates the sizes of 100 million rows from those that were measured.
"""
