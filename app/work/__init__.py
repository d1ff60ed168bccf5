"""The worker process: jobs and their attempts, events to sinks, and deletion of what endpoints leave behind.

procrastinate runs the jobs, although its driver is psycopg, and `job_attempts.py` replaces its storing of outcomes.
The alternative is pgqueuer, which uses asyncpg. A worker on pgqueuer 1.6 that passes the same tests needs 77 more
lines of ours in `worker.py`, `job_attempts.py`, `storage/jobs/jobs.py`, `storage/jobs/stalled_jobs.py` and a module
for its driver and statements. That does not count 124 lines of SQL for its tables, a migration of stored jobs, and
a job that empties its log. It removes 6 packages and adds 12, most of them for its command line, which is not
optional.

The statements for outcomes and for dead workers are ours with both. pgqueuer stores an outcome by the id of the job
alone, so a late attempt deletes a job that another worker runs. It deletes a job whose handler raises
`CancelledError`. It takes over the jobs of a dead worker immediately and counts no deaths, so a job that kills its
workers is never held and kills the jobs beside it. It enqueues jobs of fixed times a second late.

pgqueuer is faster: 400 empty jobs per second instead of 160, with 0.5 ms of CPU time per job instead of 1.3 ms
(medians of five runs in turn, on two busy cores). Of jobs that take 50 ms, procrastinate runs more: 162 per second
instead of 130. Either is enough, because events are not jobs.

A loop of the worker delivers events; they are not jobs (`event_delivery.py`). A sink that does not respond for a
day may have 100,000 events. As jobs, they would take the worker's slots and slow down each search for a due job. A
row per event also keeps their order.

Each sink has its own task, so a slow sink delays only itself. While the circuit breaker of a sink is open, no
events are claimed, so none loses attempts. A half-open breaker gets a single event.

One job deletes by age (`retention.py`), one table and one app after another. Each deletion has its own time limit.
A failure is raised only after the remaining deletions, so that no table waits for another one.
"""
