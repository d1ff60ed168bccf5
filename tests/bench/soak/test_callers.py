"""The callers of a soak succeed against an undisturbed server, and their turns are stored."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from app.commands.users import make_users
from bench.deployment import APP
from bench.soak.callers import SHORT, make_callers
from bench.soak.http import UserClient, open_http
from bench.soak.judge import answer_anomalies, error_anomalies, record_anomalies, stream_anomalies
from bench.soak.observations import Observations
from bench.soak.records import read_history, read_leftovers, read_rows
from bench.soak.schedule import Disturbances
from bench.soak.testbed import soak_configs
from bench.soak.vendor_faults import VendorFaults
from storage.operators.audit import COMMAND
from tests.deploy.commands import command
from tests.running.servers import Server

USERS = 12
LOAD_S = 4
RECORDS_TIMEOUT_S = 20


@pytest.fixture
async def healthy(server: Server) -> AsyncIterator[Server]:
    """The server with the configs of a soak, and a vendor without faults."""
    async with command("bench.upstream") as vendor:
        for key, value in soak_configs(f"http://127.0.0.1:{int(await vendor.until(''))}", SHORT).items():
            kind, _, name = key.partition("/")
            await server.services.configs.put(APP, kind, name, value, author="tests", origin=COMMAND)
        yield server


async def test_callers_of_every_kind_succeed_and_their_turns_are_stored(healthy: Server):
    tokens = [token for _, token in await make_users(healthy.services, APP, USERS)]
    headers = [{"X-Service-App-Id": APP, "X-Service-Session-Token": token} for token in tokens]
    begun = time.monotonic()
    notes = Observations(lambda: time.monotonic() - begun)
    async with open_http() as http:
        clients = [UserClient(http, healthy.url, one, notes) for one in headers]
        callers = make_callers(clients, notes, lengths=SHORT, seed=3)
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(LOAD_S, over.set)
        await asyncio.gather(*(caller.run(first_s=0, over=over) for caller in callers))
    settings, undisturbed = healthy.services.settings, Disturbances()
    leftovers = await read_leftovers(
        settings.database_url, settings.redis_url, within_s=RECORDS_TIMEOUT_S, prefix=settings.redis_prefix
    )
    rows = await read_rows(settings.database_url)
    history = await read_history(healthy.url, notes.turns, headers=lambda user: headers[user])

    assert set(notes.started) >= {"text", "tts", "audio", "leave", "cancel"}
    assert len(notes.streams) == notes.started.total() >= USERS
    assert notes.live == 0
    assert stream_anomalies(notes.streams, undisturbed) == []
    assert [
        one
        for one in error_anomalies(notes.streams, undisturbed, VendorFaults())
        if one.miss and "canceled" not in one.what
    ] == []
    assert answer_anomalies(notes.answers, undisturbed) == []
    assert {turn.status for turn in notes.turns} == {"complete", "interrupted"}
    assert record_anomalies(notes.turns, rows, undisturbed, where="PostgreSQL") == []
    assert record_anomalies(notes.turns, history, undisturbed, where="the history") == []
    assert leftovers.is_empty
