"""One run: the callers and the kills, what is left afterwards, and the verdicts."""

import asyncio
import random
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from subprocess import PIPE

from aiohttp import ClientSession

from bench.kills.books import Books, read_books
from bench.kills.callers import Place, new_user
from bench.kills.client import Client, GivenUp, Observations, open_http
from bench.kills.judge import Acts, Verdict, judge
from bench.kills.killing import Kills
from bench.kills.settling import settle
from bench.kills.testbed import APP, KillsTestbed
from deploy.running import running
from storage.accounts import emails
from storage.postgres.database import Database, open_database
from streams.tasks import background

_LAST_REQUESTS_S = 120
_FIRST_S = 10.0
"""The time over which the first users log in."""


@dataclass(slots=True)
class Run:
    """`rounds`: how often the clock was moved until nothing changed any more."""

    testbed: KillsTestbed
    kills: Kills
    callers: int
    seed: int
    observations: Observations = field(default_factory=Observations)
    users: int = 0
    load_s: float = 0
    rounds: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when no more kills follow: after all of them, or earlier to end the run."""

    async def run(self) -> tuple[Books, list[Verdict]]:
        """Run the load, let everything be repaired, stop the deployment, and judge."""
        async with open_http() as http, open_database(self.testbed.stores.database_url, max_size=8) as database:
            await self._load(http, database)
            print("no more traffic: the reconciliation completes what was left", flush=True)
            self.rounds = await settle(self.testbed, http, database)
            ledger = await self._verify_ledger()
            async with database.connection() as conn:
                books = await read_books(http, self.testbed.sandbox_url, conn)
        codes = await self.testbed.stop()
        seen = self.observations
        verdicts = [
            ledger,
            *judge(books, Acts(seen.begun, seen.answered, seen.joined, seen.refunded, seen.disputed)),
            Verdict("each answer is one that a kill explains", seen.answered.total(), seen.misses),
            Verdict("all processes end", len(codes), self._left(codes)),
        ]
        return books, verdicts

    async def _load(self, http: ClientSession, database: Database) -> None:
        """Run users, and kill processes meanwhile. At the end, users finish their actions."""
        begun, loop = time.monotonic(), asyncio.get_running_loop()
        place = Place(
            Client(http, self.testbed.url, self.observations, self._chance("callers")),
            self.testbed.sandbox_url,
            self.testbed.env["PARLEY_SERVER_KEY"],
            partial(_prove, database),
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as deadline, asyncio.TaskGroup() as tasks:
                for _ in range(self.callers):
                    tasks.create_task(self._call(place))
                async with (
                    background(self.kills.run(self.testbed, self._chance("kills"))) as killing,
                    background(self.over.wait()) as over,
                ):
                    await asyncio.wait([killing, over], return_when=asyncio.FIRST_COMPLETED)
                self.over.set()
                deadline.reschedule(loop.time() + _LAST_REQUESTS_S)
        await self.testbed.revive()
        self.load_s = time.monotonic() - begun

    async def _call(self, place: Place) -> None:
        """Be one user after another."""
        await asyncio.sleep(place.random.uniform(0, _FIRST_S))
        while not self.over.is_set():
            with suppress(GivenUp):
                user = await new_user(place)
                self.users += 1
                await user.run()

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{self.seed} {what}")  # noqa: S311 - a repeatable choice, not used for security

    async def _verify_ledger(self) -> Verdict:
        command = [sys.executable, "-m", "app", "verify", "ledger"]
        async with running(command, env=dict(self.testbed.env), stdout=PIPE) as process:
            assert process.stdout is not None, "it was started with a pipe"
            lines = (await process.stdout.read()).decode().splitlines()
            await process.wait()
        return Verdict(
            "`verify ledger` finds no difference", 1, lines[:-1] if lines[-1:] == ["0 differences"] else lines
        )

    def _left(self, codes: Sequence[int | None]) -> list[str]:
        unclean = [f"exit code {code}" for code in codes if code != 0]
        return unclean + [f"process {pid} still runs" for pid in self.testbed.left()]


async def _prove(database: Database, uid: str) -> None:
    async with database.transaction() as conn:
        now = datetime.now(UTC)
        await emails.set_current(conn, APP, uid, address=f"{uid}@kills.example", old="", now=now)
