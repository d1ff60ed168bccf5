"""How a stream lives: its actor, mailbox and context, their owner, and access from other processes.

`AdmissionControl.admit` (`admission.py`) is the only entrance: it takes the slot, creates the context and starts
the actor, or returns the location of the stream of a repeated request.

A stream can be resumed on any process. While its client is attached, a stream costs two scripts in Valkey, and its
events stay in the process. Its log is copied to a Redis Stream when its last reader disconnects, when another
process asks for it (`relay.py`), or when its process drains. Later events are added to the copy. The ids of its
entries are event ids.

A reader in another process (`remote_log.py`) renews its lease with the stream's process every five seconds, and
thereby notices when that process is dead. Each renewal also copies events that Valkey lacks, for example because it
was unavailable when the stream ended. A reader waits up to 60 s for Valkey. If that fails, or if its own process
ends, its response ends with an `error` event without an id. Clients then resume. Ended streams stay in memory for
two minutes and until their readers have left, at most 256 MiB in total.

The events of a durable stream reach its readers once they are copied (`streams/held_back.py`). With 100 ms between
two copies, sending first would leave readers with words that the process which continues the stream does not know.
When its process dies, another one takes it over (`actors/plays/takeover.py`): it continues the answer, or stores
what was said and ends the stream. Both are the same play, so a record is written in one way only. The former
process may only be cut off, so it is fenced: the scripts that append to the log and release the slot refuse it, and
the row of the turn names the process that may close it.

Before a process ends the streams of a session, it checks the row of the session (`session_watch.py`). After an
outage of either store it checks the sessions of all its streams, because it may have missed announcements.
"""
