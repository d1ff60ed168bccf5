"""Events for an app's own systems: storing and delivering them.

An event is stored in the transaction of the change that it reports (`outbox.py`), one row per sink. `EventSinks`
finds the sinks of an event in the configs in memory, so an event without a sink costs no statement. A new event
needs a subclass of `ReportedEvent` and one call of `EventSinks.report`.

One worker at a time delivers to a sink. It claims a batch (`queue.py`), and sends it without an open transaction:
events of the same user in their order, and events of different users concurrently. If the worker dies, the claim
ends after a minute.
"""
