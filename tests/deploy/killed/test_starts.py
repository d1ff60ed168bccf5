"""Server processes that are killed before they are ready, as by a kernel without memory, are started again."""

import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import pytest

from app.settings import Settings
from streams.wire.codec import loads
from tests.app.valkey_proxy import ValkeyProxy, postgresql_proxy_to
from tests.deploy.commands import Command
from tests.deploy.serving import serving, settings

__all__ = ["settings"]

pytestmark = pytest.mark.timeout(180)  # A process needs 2 s of CPU to start, and the machine may be busy.

_STARTS = 6


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[tuple[Settings, ValkeyProxy]]:
    """A database that answers nothing at first, so that no process becomes ready."""
    async with postgresql_proxy_to(settings.database_url) as (proxy, url):
        proxy.flowing.clear()
        yield replace(settings, database_url=url), proxy
        proxy.flowing.set()


def printed(parent: Command) -> list[str]:
    """Return the lines that are not log lines."""
    return [line for line in parent.lines if not line.startswith("{")]


async def test_a_process_that_is_killed_before_it_is_ready_is_started_again(
    database: tuple[Settings, ValkeyProxy],
) -> None:
    settings, proxy = database
    async with serving(settings) as parent:
        for _ in range(4):
            os.kill((await parent.event("process.started"))["pid"], signal.SIGKILL)
        proxy.flowing.set()
        ready = {(await parent.event("process.ready"))["number"] for _ in range(2)}
        assert ready == {0, 1}
        parent.process.send_signal(signal.SIGTERM)
        assert await parent.end() == 0
    assert printed(parent) == []
    reasons = [loads(line)["reason"] for line in parent.lines if "process.not_started" in line]
    assert len(reasons) == 4
    assert all(reason.endswith(" ended by SIGKILL before it was ready") for reason in reasons)


async def test_the_parent_ends_if_a_process_is_killed_before_it_is_ready_again_and_again(
    database: tuple[Settings, ValkeyProxy],
) -> None:
    settings, _ = database
    starts = Counter[int]()
    async with serving(settings) as parent:
        async for line in parent:
            if "process.started" in line:
                started = loads(line)
                starts[started["number"]] += 1
                with suppress(ProcessLookupError):  # The parent has given up meanwhile.
                    os.kill(started["pid"], signal.SIGKILL)
        assert await parent.end() == 1
    assert max(starts.values()) == _STARTS
    [line] = printed(parent)
    assert line.startswith("parley: process ")
    assert line.endswith(f" ended by SIGKILL before it was ready, as did the {_STARTS - 1} before it")
