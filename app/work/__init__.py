"""The worker process: jobs and their attempts, events to sinks, and deletion of what endpoints leave behind.

A loop of the worker delivers events, not jobs (`event_delivery.py`). A sink that does not respond for a day may
have 100,000 events: as jobs, they would take the worker's slots, and make each search for a due job slower. A row
per event also keeps their order.

Each sink has its own task, so a slow one delays only itself. An open circuit breaker costs no attempts: nothing is
claimed then. A half-open one gets a single event.

One job deletes by age (`retention.py`), one table and one app after another. Each has a time limit of its own, and
what fails does so once the rest is deleted, so that no table waits for another one.
"""
