"""Turns whose record is still `running` although their process is dead."""

from typing import NamedTuple, Protocol

import structlog

from storage.clock import AppClock, app_now
from storage.postgres.database import Database
from storage.processes.heartbeats import Heartbeat
from streams.tasks import pause, stopping
from streams.wire.errors import StoreError, Unavailable

log = structlog.get_logger()

_SWEEP_EVERY_S = 20.0
"""Less than the time for which Valkey keeps the entry of a stream after the stream's time is over."""
_BATCH_SIZE = 1000


class RunningTurn(NamedTuple):
    """A turn whose record is `running`."""

    app_id: str
    uid: str
    conversation_id: str
    stream_id: str
    process: str


class Settle(Protocol):
    """Stores what a stream of a dead process has said, unless another process may still continue it.

    `gives_up`: it is not to be continued. Returns whether the turn is over: if not, another process has taken over
    the stream, or may do so.
    """

    async def __call__(self, turn: RunningTurn, *, gives_up: bool) -> bool: ...


_COLUMNS = "record.app_id, uid, conversation_id, stream_id, process"
_FROM = "from conversation_records record join conversations using (app_id, conversation_id)"
_RUNNING = f"select {_COLUMNS} {_FROM} where app_id = $1 and conversation_id = $2 and status = 'running'"
_PROCESSES = "select distinct process from conversation_records where status = 'running' and process <> ''"
_OF_PROCESSES = f"""
select {_COLUMNS} {_FROM} where status = 'running' and process = any($1) order by record.created_at desc limit $2
"""
_END = f"""
update conversation_records set status = 'incomplete', updated_at = {app_now("$4")}
where app_id = $1 and conversation_id = $2 and status = 'running' and process = $3
"""


class DeadTurns:
    """Ends turns of dead processes. What durable streams have said is stored first."""

    def __init__(self, database: Database, heartbeat: Heartbeat, clock: AppClock) -> None:
        self._database = database
        self._heartbeat = heartbeat
        self._clock = clock
        self._over: set[str] = set()
        """Streams of which the last sweep has found that there is nothing to store."""
        self.settle: Settle | None = None
        """`open_takeovers` sets this, because streams can be taken over only once everything else is open."""

    async def end(self, app_id: str, conversation_id: str, *, gives_up: bool) -> bool:
        """End the running turn of a conversation if its process is dead, and return whether it has ended.

        Without `gives_up`, a turn that another process may continue is not ended. No database connection is held
        while the stores are asked for heartbeats.
        """
        async with self._database.connection() as conn:
            row = await conn.fetchrow(_RUNNING, app_id, conversation_id)
        if row is None:
            return False
        turn = RunningTurn(**row)
        try:
            if not turn.process or not await self._heartbeat.dead([turn.process]):
                return False
            if self.settle is not None and not await self.settle(turn, gives_up=gives_up):
                return False
        except (StoreError, Unavailable):
            return False
        async with self._database.connection() as conn:
            await conn.execute(_END, app_id, conversation_id, turn.process, self._clock.offset_s(app_id))
        return True

    async def sweep(self) -> None:
        """Store what streams of dead processes have said if nobody has continued them in time."""
        assert self.settle is not None, "`open_takeovers` sets it"
        async with self._database.connection() as conn:
            processes = {row["process"] for row in await conn.fetch(_PROCESSES)}
        turns: list[RunningTurn] = []
        if dead := await self._heartbeat.dead(processes):
            async with self._database.connection() as conn:
                turns = [RunningTurn(**row) for row in await conn.fetch(_OF_PROCESSES, list(dead), _BATCH_SIZE)]
        over: set[str] = set()
        for turn in turns:
            if turn.stream_id in self._over or await self.settle(turn, gives_up=False):
                over.add(turn.stream_id)
        self._over = over

    async def keep_sweeping(self) -> None:
        """Sweep periodically until cancelled."""
        while not stopping():
            try:
                await self.sweep()
            except (StoreError, Unavailable) as error:
                log.debug("dead_turns.not_settled", error=str(error))
            await pause(_SWEEP_EVERY_S)
