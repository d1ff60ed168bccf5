"""Jobs, the inbox of webhooks, and idempotency keys.

Jobs are rows (`jobs.py`), stored in the transaction that needs them. The tables and the worker are those of
procrastinate; a migration runs the schema of the installed package if its digest is the expected one. The worker is
a separate process, because its driver is psycopg instead of asyncpg, and because a job must not delay streams. A
job may run twice. The death of a worker is not a failure of its jobs. They run again within a minute, at random
times, so that they do not always run beside a job that kills its worker. The deaths are counted in a job's
priority, and a job is held after ten of them. An attempt that the stop of its worker interrupts is never the last
one. The outcome of an attempt is stored as soon as the database is available, and only while its worker still has
the job. Jobs with the same key do the same work: at most one of them waits. If a failed attempt would make a second
one wait, that job is dropped.

Why a job is held is stored in the transaction that holds it (`failures.py`), with the configs that its last attempt
has read: the store of configs records them, so that no job has to name its config. The text of an unexpected error
is not stored, because it may contain anything. Held jobs are grouped by their message without its words with digits
(`held.py`). One operation changes at most 1,000 jobs of a group. It skips jobs that another operator changes at the
same moment, so each job is changed and audited once. A worker stores its schedules when it starts, because server
processes do not know the handlers of jobs.

The tables of pgqueuer (`app/work/__init__.py` compares both) would need as many statements of our own: to list,
retry, drop, count, erase and expire jobs, and to move them with the clock of their app. Its key is also unique
while a job runs, so a change during the run would cause no further run. It logs each attempt in a table that we
would have to empty. The package generates its tables by Python code, and its releases change them: 1.6 and 2.0, a
month apart, both need an upgrade. Applied migrations need the schema of procrastinate anyway.

An idempotency key is claimed before the transaction of its request, and the response is stored in that transaction
(`idempotency.py`). The claim is a row that is committed immediately. So a concurrent repeat gets 409 immediately,
and a handler may call other systems before it begins its transaction, without a connection to the database. The
transaction stores the response only if the request still holds the claim; otherwise, the effect is rolled back. A
repeat takes over a claim that is older than 60 s, because its process has died or hangs. After a failure or a
crash, the repeat has the same `operation_id`, from which handlers derive their keys at other systems, even if a
request with another body has failed under the key in between. If the response is larger than 1 MiB, only the fact
that it was sent is stored.

Webhooks are stored before they are answered (`inbox.py`), in one transaction with their job, once their source has
verified them. Unique ids of the event and of its delivery identify repeats. Like other jobs, webhooks may be
processed twice and in any order. An operator can read the raw body, and replay the webhook.
"""
