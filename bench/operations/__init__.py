"""Measures what one call costs the stores and the processes.

Each kind of call (`streams.py`, `requests.py`) is made many times in a row while nothing else happens. The counters
of the stores, of `/proc` and of the folder of stored files are read before and after (`measuring.py`). What the
background work of the processes costs in the meantime is measured once, while nothing is called, and subtracted.
Idle sessions of PostgreSQL report their transactions only after 10 s, so each kind is followed by a pause.
"""
