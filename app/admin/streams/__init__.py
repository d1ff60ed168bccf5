"""Streams for operators: those that run in any process, one of them with its events, and those that have ended.

Each process reads what is asked for from its actors, so an event costs nothing more while nobody looks. The
process that responds asks all others at once (`processes.py`). One that does not answer in time is named in the
reply: it may have streams that the list lacks. Each process sends only the streams of the page, and how many match.

Events are read as a client resumes a stream (`actors/runtime`), but the reader does not count: the stream neither
waits for it nor lives on for it. Ended streams are found by their attempts, in the order of their ids.
"""
