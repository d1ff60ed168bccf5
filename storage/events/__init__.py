"""Events for the systems of an app: what is to be sent, and what has been.

A report is stored in the transaction of what it reports (`outbox.py`), one row per sink. `EventSinks` knows from
the configs in memory which sinks want an event, so an event without a sink costs no statement. A further event is a
subclass of `ReportedEvent` and one call of `EventSinks.report`.

One worker at a time delivers to a sink. It claims a batch (`queue.py`), sends the events of each user in their
order and those of several users concurrently, with no transaction open. The claim ends after a minute, if the
worker dies.
"""
