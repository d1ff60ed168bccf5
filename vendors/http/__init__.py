"""HTTP and WebSocket calls to vendors: connections, errors and retries.

A call is sent once, over a new connection, unless its `repeat` allows repeats (`outgoing.py`), as for the calls of
streams. Such a call is sent at most three times: over an idle connection, over a new one if the idle one was lost
before the first byte of a response, and over a new one by the attempt's retry. A call that moves money
(`MoneyCall`) needs a key, by which the vendor recognizes a repeated call. The code of payments uses only
`MoneyCall` and `ReadCall`, which changes nothing; `tests/code/test_money_calls.py` checks this by its imports.
"""
