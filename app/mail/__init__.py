"""Emails of apps: sending by strategies, unsubscribing, and opens.

The job that sends an email reads the suppressions, not the request, so that somebody who unsubscribes while an
email waits does not get it. Suppressions apply to strategies only: nobody can unsubscribe from codes.

Most requests of the tracking pixel are answered without the pipeline (`app/http/wire/direct.py`): complete, plain
GET requests that arrive in one read while their connection is idle. The handler of the row answers all others in
the same way. In the pipeline, a pixel takes more than three times the CPU time of a constant answer of aiohttp,
instead of about the same (`python -m bench.pixel` measures all three), and thousands of pixels may be requested at
once. The path would be removed if that were less than 2.5 times.
"""
