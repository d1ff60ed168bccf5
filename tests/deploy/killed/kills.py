"""Kills a server or a worker at one of its calls to a payment platform, and lets others complete its work."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from aiohttp import ClientError

from app.services import Services
from app.settings import Settings
from streams.tasks import background
from tests.deploy.commands import command
from tests.deploy.serving import server_env
from tests.waiting import passes
from vendors.sandbox.faults import Fault, key_of
from vendors.sandbox.server import Running

RELIABLE = {"min_calls": 1_000_000}
"""A breaker that lets all calls through, so that one that hangs does not delay the others."""
STALLED_S = 1
"""How soon another worker takes over the jobs of a killed one. A worker in use waits for longer."""


@dataclass(frozen=True)
class At:
    """A call to the platform, counted from 0. It has its effect unless the kill is `before` it."""

    call: int
    before: bool = False

    @property
    def fault(self) -> Fault:
        return Fault.HANG_BEFORE_HEADERS if self.before else Fault.HANG_BEFORE_OUTPUT

    @property
    def key(self) -> str:
        """A key with which the platform answers all calls but this one."""
        return key_of(fault=self.fault, skip=self.call, times=1, name=uuid4().hex[:8])

    def __str__(self) -> str:
        return f"{'before' if self.before else 'after'} call {self.call}"


async def kill_server(
    settings: Settings, platform: Running, port: int, ask: Callable[[str], Awaitable[object]], *, at: At | None
) -> None:
    """Send a request to another server, which is killed while it waits for the call `at`.

    `ask` sends it to a URL. `None`: the server is killed after it has done everything.
    """
    async with command("app", "serve", **server_env(settings, PORT=str(port), PARLEY_PROCESSES="1")) as process:
        await process.event("server.listening")

        async def asked() -> None:
            with suppress(ClientError):
                await ask(f"http://127.0.0.1:{port}")

        async with background(asked()) as asking:
            await (asyncio.wait([asking]) if at is None else hanging(platform, at))
            process.process.kill()
            await process.end()


async def kill_worker(settings: Settings, platform: Running, *, at: At) -> None:
    """Let a worker work, and kill it while it waits for the call `at`."""
    async with command("app", "worker", **server_env(settings)) as worker:
        await hanging(platform, at)
        worker.process.kill()
        await worker.end()


async def hanging(platform: Running, at: At) -> None:
    """Wait for a call that is not answered, until it has had its effect."""
    await platform.bill.wait(
        lambda call: call.fault == at.fault and (at.before or bool(call.asked)) and call.ended is None
    )
    await passes()


async def free_key(services: Services) -> None:
    """Let the key of the killed request be free, as it is after a minute."""
    async with services.database.connection() as conn:
        await conn.execute("update idempotency_keys set claimed_at = claimed_at - interval '61 seconds'")


async def verify_ledger(settings: Settings) -> None:
    async with command("app", "verify", "ledger", **server_env(settings)) as verification:
        assert await verification.end() == 0, verification.lines
    assert verification.lines[-1] == "0 differences"
