"""PostgreSQL, Valkey and the object store: all SQL, all names of keys, and the config kinds.

Each app has a clock (`clock.py`): real time plus an offset, which development servers can move. Whatever the rules
of an app compare with the time (sessions, retention, times of rows) uses it: `AppClock.now` in Python, `app_now` in
SQL. The offset is a parameter of each statement, and production servers never read the stored ones, so a copied row
cannot shift the time of a production app. `tests/code/test_architecture.py` lists the files that read real time.

`app_now` uses the clock of the database. `AppClock.now` uses that of its machine, because asking the database would
cost a round trip per call. So the machines need synchronized clocks, and a rule that needs the same clock in all
processes uses `app_now` in its statement, as the turns of conversations do. Moving a clock moves the times of the
app's waiting jobs, because procrastinate compares these with real time.
"""
