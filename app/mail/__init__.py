"""Emails of apps: sending by strategies, unsubscribing, and opens.

The job that sends an email reads the suppressions, not the request, so that somebody who unsubscribes while an
email waits does not get it. Suppressions apply to strategies only: nobody can unsubscribe from codes.

The tracking pixel goes through the pipeline like every other request. A shortcut that answered complete, plain GET
requests before the pipeline halved their CPU time. It was dropped, because a pixel in the pipeline takes 62 to 75
µs of CPU, 2.1 to 2.4 times a constant answer of aiohttp in the same run, and one process still returns more than
10,000 a second. That does not justify a second path through the server. `python -m bench.pixel` measures both.
"""
