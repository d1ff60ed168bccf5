"""Leaderboards: scores, periods, and the index of each board in Valkey.

A score is in exactly one period (`upload_score` in `storage/postgres/migrations/0035_leaderboards.sql`). An upload
takes a shared lock of its board and reads the time under the lock. The end of a period takes the exclusive lock, at
a later time. So an upload is committed before the winners are read, or its time is in the next period. Processes
compute when periods begin (`app/leaderboards/periods.py`) and pass several beginnings. The statement chooses one by
the database's clock.

The index of a board is never incomplete (`index.py`). Members begin with the number of the score's last change, so
that equal scores rank by time without a loss of precision. Only a higher number replaces a member, in whatever
order commands arrive. Both keys contain a mark, and a command that finds a key without it drops both. Without an
index, an upload does not add its score, because the build reads it from PostgreSQL. While the build reads, uploads
add their scores too. A score is stored before it is added, and its process may die in between. So a job adds the
scores that were stored since its last run again. Members also say whether the score has an `extra`, which only then
is read from PostgreSQL.
"""
