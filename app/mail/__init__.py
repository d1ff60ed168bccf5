"""Emails of apps: sending by strategies, unsubscribing, and opens.

Suppressions are read by the job that sends, not by the request, so that somebody who unsubscribes while an email
waits does not get it. They concern strategies only: nobody can unsubscribe from codes.

The tracking pixel goes through the pipeline like every other request. Answering whole, plain GET requests before it
was tried and halved their CPU time. It was given up, because a pixel in the pipeline takes 62 to 75 µs of CPU, 2.1
to 2.4 times a constant answer of aiohttp in the same run, and one process still returns more than 10,000 a second.
That does not justify a second way through the server. `python -m bench.pixel` measures both.
"""
