"""When a stream ends, its vendor calls are closed immediately."""

import asyncio
import random

import psutil
import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import account
from tests.calendar.clock import epoch_s
from tests.peers.sse_client import events
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from vendors.sandbox.bill import BilledCall
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

SAID = " ".join(["one two six ten"] * 200)


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def strategies(server: Server, sandbox: Running) -> list[str]:
    """Create a strategy whose vendor is silent at first, and one whose vendor answers without end."""
    key_options = {"silent": {"delay_ms": 30_000}, "speaks": {"pace_ms": 20}}
    for name, delays in key_options.items():
        await account(server, sandbox, name, "vendor_b_llm", key_of(text=SAID, **delays))
        value = {"chat": {"account": name, "model": "gpt-4o-mini"}}
        await server.services.configs.put("default", "conversation", name, value, author="test", origin=COMMAND)
    limits = {"resume_grace_s": 0.05, "rates": {"signup": {"count": 10**6, "per_s": 1}}}
    await server.services.configs.put("default", "limits", "default", limits, author="test", origin=COMMAND)
    return list(key_options)


async def _close_delay_ms(talk: Talk, sandbox: Running, name: str, rng: random.Random, *, deleted: bool) -> int:
    """Return for how long the vendor call was open after the client had ended the stream."""
    before = max((entry.id for entry in sandbox.bill.since()), default=0)
    response = await talk.say("Tell me", name)

    def mine(entry: BilledCall) -> bool:
        return entry.id > before and entry.vendor == "openai"

    await sandbox.bill.wait(lambda entry: mine(entry) and (name == "silent" or entry.outputs > 0))
    await asyncio.sleep(rng.random() / 20)
    began = epoch_s() * 1000
    if deleted:
        async with talk.delete(f"/bp/ai/stream/{response.headers['X-Service-Stream-Id']}") as answer:
            assert answer.status == 200
        assert [event.name async for event in events(response)][-1] == "end"
    else:
        response.close()
        began += 50  # Wait for `resume_grace_s`.
    call = await asyncio.wait_for(sandbox.bill.wait(lambda entry: mine(entry) and entry.ended is not None), 5)
    assert call.how == "closed_by_client"
    return round(call.ended - began)


async def _close_delays_ms(server: Server, sandbox: Running, *, streams: int) -> list[int]:
    names = await strategies(server, sandbox)
    talk = Talk(server, *(await server.login()))
    delays_ms: list[int] = []
    for nth in range(streams):
        rng = random.Random(nth)  # noqa: S311 - the same every time
        delays_ms.append(await _close_delay_ms(talk, sandbox, names[nth % 2], rng, deleted=nth % 4 < 2))
        await server.services.supervisor.idle()
    return sorted(delays_ms)


async def test_vendor_calls_are_closed_when_a_stream_is_cancelled_or_has_no_readers(
    server: Server, sandbox: Running
) -> None:
    delays_ms = await _close_delays_ms(server, sandbox, streams=20)
    assert delays_ms[len(delays_ms) // 2] <= 300
    assert delays_ms[-1] <= 1_000


@pytest.mark.soak
async def test_vendor_calls_are_closed_within_a_tenth_of_a_second(server: Server, sandbox: Running) -> None:
    delays_ms = await _close_delays_ms(server, sandbox, streams=1_000)
    assert delays_ms[990] <= 100, delays_ms[-20:]


async def test_nothing_of_a_cancelled_stream_remains(server: Server, sandbox: Running) -> None:
    await _close_delays_ms(server, sandbox, streams=4)
    tasks, before = len(asyncio.all_tasks()), psutil.Process().num_fds()
    await _close_delays_ms(server, sandbox, streams=20)
    assert len(asyncio.all_tasks()) <= tasks + 2
    assert psutil.Process().num_fds() <= before + 4


async def test_stream_without_readers_ends_once_a_strategy_answers_that_does_not_outlive_readers(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await server.services.configs.put(
        "default", "limits", "default", {"resume_grace_s": 0.05}, author="test", origin=COMMAND
    )
    await strategy("waits", "hang", on_abandon="drain", waits={"first_output_s": 0.5})
    await strategy("answers", "slow:Half of it")
    response = await talk.say("Hello", "waits", "answers")
    talk.remember(response)
    await vendor.begun.wait()
    response.close()
    await asyncio.wait_for(server.services.supervisor.idle(), 5)
    assert (await talk.history())["conversation_records"][0]["status"] in {"incomplete", "failed"}
    assert vendor.closed == ["hang", "slow:Half of it"]
