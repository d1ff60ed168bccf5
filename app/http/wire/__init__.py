"""Bytes of a connection before they are a request: limits on their number and on the time for parsing them.

Reads of many bytes or lines are parsed in slices (`ingress.py`). Connections whose framing is a large part of their
bytes (*dense* ones, for example uploads in tiny chunks) share 15% of the loop's time for parsing. All others share
four slices per iteration of the event loop, because the next iteration runs the handlers of everything that was
parsed, and an event of a stream passes several iterations. Thus uploads in tiny chunks delay neither streams nor
ordinary uploads. Connections that have parsed little recently go first, so endless uploads hardly delay an upload
of ordinary size. A connection waits for at most four slices per other waiting connection, so none is starved. The
transport is paused while a part of a read is held back.

After bytes that cannot be parsed, a connection discards its input (`framing.py`): one read every 10 ms, up to 1
MiB, for at most 2 s after the response. Closing a socket with unread bytes would reset the connection and lose the
response. The same holds for heads, trailers and chunk extensions above their limits.
"""
