"""Running streams: the runtime, and the plays that produce the events of each kind of stream.

A *play* is the coroutine function that produces the events of one kind of stream. An *actor* runs one play, and is
one task.
"""
