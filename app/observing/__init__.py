"""What the server reports about itself: log lines, and traces of streams.

A thread writes the log lines (`log_writer.py`), because a write blocks while nobody reads standard output. It
collects lines for 10 ms, because a wake-up per line would cost more than the line. It holds at most 5,000 lines.
Further lines are dropped, counted, and reported as `log.lines_dropped`.

A trace is created when its stream ends, from the stream's receipt (`actors/runtime/receipt.py`), never per event.
It contains no user content. A thread creates the spans and sends them; the event loop spends about 30 µs per
stream.
"""
