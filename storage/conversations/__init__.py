"""Conversations: their turns, the logs of their streams, and stored speech.

One admission script handles turn, limits and cleanup in one round trip. It also handles the `Idempotency-Key`,
together with the turn: a repeated request gets the running or ended stream, on whichever process it is. While
Valkey is unavailable, streams continue to start: the database row of a running turn protects the turn (a unique
index, checked before the 200), each process counts streams per user by itself, and slots that could not be released
are released later.

Turns that begin or end at the same time share one round trip and one commit (`turns.py`). If one of these turns is
refused, each is tried separately.

The end of a turn is never dropped. Writing it is tried for five seconds. After that it is queued in Valkey
(`retry_queue.py`), and any process writes it later. Once the answer is complete, nothing cancels its storage. The
attempts of streams without a turn are queued in the same way.

A record that is `running` although its process is dead is ended by whoever notices it (`dead_turns.py`), but not
before what a durable stream has said is stored in it. Reading the history leaves a turn alone that may still be
continued; the next turn of the conversation does not.
"""
