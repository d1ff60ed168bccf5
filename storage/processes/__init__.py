"""Processes of the server: which run, and calls from one to another.

Each process has a heartbeat (`heartbeats.py`), so nothing has to be renewed per stream. Every ten seconds a process
reports itself to Valkey and as a row in PostgreSQL. It counts as dead only if it has reported to neither store for
30 s. No process counts as dead while a store is unavailable, for 30 s after Valkey restarts or a beat fails, or in
the view of a process that was suspended itself. After an outage of Valkey, each process restores the entries of all
its running and still readable streams at once, and copies logs again that Valkey has lost. For 30 s an unknown
stream id gets 503, because clients treat 404 as final.

An unknown `Idempotency-Key` is new only if Valkey is complete. A process that has restored its streams registers
itself (`storage/valkey/lua/register.lua`) with the run id of Valkey. Once all processes that are alive according to
PostgreSQL have done so, the last one sets a key, which the admission script checks. A flush deletes that key, and a
restart changes the run id; each process notices both with its next heartbeat. Until the key is set again, a request
whose idempotency key is unknown gets 503 instead of a second stream. While Valkey is unavailable, streams start
without this check.
"""
