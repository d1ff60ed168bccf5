"""Rows of the route table: inputs, replies, errors, transactions and documentation of an endpoint.

The signature of a handler is read when its row is created (`inputs.py`), not per request. An invalid signature or
row prevents start-up, with an error of one line that names the row.

A row lists the errors of its handler, each by its own class, and only those of stores and vendors by a base class.
Those of the checks before the handler follow from the row (`row_errors.py`). The API reference shows both. An
answer with any other error is a bug: it is sent, and logged as `response.unlisted_error`, which makes tests fail.
An area may change statuses (`statuses`), which also holds for subclasses that do not set a status.
"""
