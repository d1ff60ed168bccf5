"""What is known of a request while it is answered: for log lines, metrics and errors."""

from aiohttp import web

ARRIVED = web.RequestKey("arrived", float)
"""`time.monotonic()` when the head was there."""
REQUEST_ID = web.RequestKey("request_id", str)
APP_ID = web.RequestKey("app_id", str)
WAITED = web.RequestKey("waited", float)
"""Seconds spent waiting for the client's body before the handler began."""
USER_ID = web.RequestKey("user_id", str)
