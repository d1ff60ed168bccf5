"""Incremental parsers and decoders, events and their encoding, the event log, the SSE response and metrics.

Of these, only the SSE response does I/O: it writes to its socket. Parsers, splitters and decoders use no clock and
no socket. Their result does not depend on how the bytes are split, which property tests check.

Frames are encoded once. The SSE response (`sse.py`) is based on that of aiohttp-sse, with its own `prepare()` and
without `send()`. It sends several frames in one write, and the head together with the first of them, because a
write costs more than the creation of its content. The ping task of aiohttp-sse is not started; pings are sent only
while no event arrives.

A delta is processed completely in the read that brings it (`push.py`). The callback of the vendor's connection
parses it, adds it to the answer and to the log, and writes it to the reader's socket. No task is woken and no
generator is resumed. A sink that accepts no more, because a reader lags, makes the play wait, and with it the
vendor's connection. Sources that cannot push are iterated in a loop.

A lagging reader gets its backlog in pieces. At most one piece of 64 KiB waits in its transport, and 128 KiB in the
kernel. Larger frames are written in slices that share the log's memory. Logs of other processes are read in pages
of the same size. Frames that an attached reader has not read are not dropped.

`/metrics` is generated one metric at a time (`metrics.py`), and the loop runs other tasks in between, because a
whole registry of histograms would block it for 10 ms and more.
"""
