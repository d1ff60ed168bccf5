"""The life of server processes.

`serve` in `app/main.py` runs one server process. With `PARLEY_PROCESSES` above 1, a parent process starts several
of them (`parent.py`). Parent and children talk over a socket pair (`control.py`). `sockets.py` binds listening
sockets before anything else is opened, `listeners.py` has those from which a process accepts at the moment,
`acceptor.py` accepts a few connections per iteration of the event loop, and `drain.py` decides which requests an
ending process still serves, and when it exits.

The parent owns the sockets of all processes. A slot holds the public socket and the metrics socket of one process,
and outlives the process. While a slot has no process, the others accept connections from its socket, so no waiting
connection is reset. On SIGHUP a successor takes over the slot once it is ready. The old process accepts no more
connections and serves its existing ones, including new streams, with `Connection: close` in each response. After at
most 20 s, it closes idle connections, so that they bring no more streams. Requests that have begun to arrive are
still served, including new streams. Only then does the time `PARLEY_DRAIN_TIMEOUT_S` begin, after which running
streams end with an `error` event. The process ends after its last response. Each slot has at most one replaced
process at a time, so the stores never serve more than twice the configured number. A child that hangs is killed 30
s after its drain time, so that it does not block its slot.

If the parent dies, its children drain without listening. They notice that the control channel is closed, accept the
connections that already wait (no other process would), and close all sockets. A new parent can listen on the same
ports within a second while the old streams continue. A starting server waits up to 2 s for its ports. A child that
has drained waits up to 3 s for the response of the parent before it closes its sockets, so that it knows whether
the parent is alive.

A single process cannot be replaced, because it has no successor. On SIGHUP it logs `server.not_replaced` and
changes nothing. A child that receives SIGHUP directly does the same.

Freed memory is returned to the operating system (`memory.py`). With glibc, blocks of 64 KiB and more have their own
mappings, and free pages of the heap are returned every 10 s. CPython's arenas of small objects stay allocated for
the largest number of connections so far, about 15 KiB each, and later connections reuse them. With
`PYTHONMALLOC=malloc`, glibc also allocates the small objects and returns their pages. Before that, a garbage
collection empties CPython's free lists, unless more than 20,000 objects would make it slow.

Each process publishes its figures (`figures.py`): every five seconds, it writes to Valkey what it runs, and by how
much its own metrics have grown in the last minutes. The overview of the console adds up the figures of all
processes, so it does not depend on which process answers. The buckets of durations are added up too, and the
percentiles are computed from the sums. The overview's data from PostgreSQL is kept for ten seconds, however many
operators watch.
"""
