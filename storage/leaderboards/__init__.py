"""Leaderboards: scores, periods, and the index of each board in Valkey.

A score is in exactly one period (`upload_score` in `storage/postgres/migrations/0035_leaderboards.sql`). An upload
shares a lock of its board and reads the time under the lock; the end of a period takes the lock alone, at a later
time. So an upload is committed before the winners are read, or its time is in the next period. Processes compute
when periods begin (`app/leaderboards/periods.py`) and pass several beginnings, of which the statement chooses by
the database's clock.

The index of a board is never half there (`index.py`). Members begin with the number of the score's last change, so
that equal scores rank by time without a loss of precision, and only a higher number replaces a member, in whatever
order commands arrive. Both keys have a mark, and a command that finds one without it drops both. An upload does not
put its score where there is no index: the build reads it from PostgreSQL. While it reads, uploads are put too. A
score is stored before it is put, so a job puts again what was stored since its last run, in case a process has died
in between. Members also say whether something was sent with the score: PostgreSQL is asked for it only then.
"""
