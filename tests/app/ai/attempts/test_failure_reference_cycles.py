"""Streams that fail leave no reference cycles. The garbage collector runs rarely, and would keep their stacks."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.app.valkey_proxy import ValkeyProxy, settings, valkey_proxy
from tests.garbage import collected_by_hand, garbage
from tests.peers.sse_client import events
from tests.peers.vendor import Vendor
from tests.running.servers import Server

__all__ = ["settings", "valkey_proxy"]

TURNS = 10
OURS = {"actors", "app", "storage", "streams", "vendors"}
STORY = "slow:Once upon a time"


@pytest.fixture(autouse=True)
async def not_readable(server: Server) -> None:
    """Ended streams are forgotten immediately. While one can be read, its stack would not be garbage."""
    values = {"readable_s": 0}
    await server.services.configs.put("default", "limits", "default", values, author="test", origin=COMMAND)


async def left_by(turn: Callable[[], Awaitable[Any]]) -> dict[str, int]:
    """Return the number of our objects that ten turns leave in reference cycles, by class.

    A stack that is kept holds some of them. asyncpg's connections are cycles themselves.
    """
    for _ in range(3):
        await turn()
    with collected_by_hand():
        for _ in range(TURNS):
            await turn()
        kinds = (type(item) for item in garbage())
        return dict(Counter(kind.__qualname__ for kind in kinds if kind.__module__.split(".")[0] in OURS))


async def turn(talk: Talk, *strategies: str) -> None:
    talk.conversation_id = ""
    async with talk.say("hello", *strategies) as response:
        await response.read()


@pytest.fixture
async def strategy(strategy: Callable[..., Awaitable[None]], server: Server, vendor: Vendor) -> Any:
    """Creates strategies of an account whose calls are never skipped, however many fail."""
    account = {"platform": "vendor_b_llm", "base_url": vendor.url, "breaker": {"min_calls": 1_000}}
    await server.services.configs.put("default", "vendor_accounts", "test", account, author="test", origin=COMMAND)
    return strategy


FAULTS = ["refuse:503", "reset", "cut:Once upon a time", "error:Once upon", "hang:x"]


@pytest.mark.parametrize("model", ["say:Fine", *FAULTS])
async def test_vendor_answers_leave_no_reference_cycles(talk: Talk, strategy, model: str) -> None:
    await strategy("one", model, waits={"first_output_s": 0.2, "between_s": 0.2})
    assert await left_by(lambda: turn(talk, "one")) == {}


@pytest.mark.parametrize("model", FAULTS)
async def test_strategies_that_others_replace_leave_no_reference_cycles(talk: Talk, strategy, model: str) -> None:
    await strategy("one", model, waits={"first_output_s": 0.2, "between_s": 0.2}, on_break="restart")
    await strategy("two", "say:Fine")
    assert await left_by(lambda: turn(talk, "one", "two")) == {}


async def test_repeated_and_canceled_requests_leave_no_reference_cycles(
    talk: Talk, strategy, vendor: Vendor
) -> None:
    await strategy("slow", STORY)

    async def canceled_turn() -> None:
        talk.conversation_id = ""
        talk.headers = {"Idempotency-Key": new_id()}
        async with talk.say("hello", "slow") as response, talk.say("hello", "slow") as repeat:
            stream_id = response.headers["X-Service-Stream-Id"]
            assert repeat.headers["X-Service-Stream-Id"] == stream_id
            async with talk.delete(f"/bp/ai/stream/{stream_id}") as canceled:
                assert canceled.status == 200
            await response.read()
            await repeat.read()

    assert await left_by(canceled_turn) == {}


async def test_refused_statements_leave_no_reference_cycles(talk: Talk, strategy, server: Server) -> None:
    await strategy("one", "say:Fine")
    async with server.services.database.connection() as conn:
        await conn.execute("alter table conversation_records rename to hidden")
    assert await left_by(lambda: turn(talk, "one")) == {}


async def test_lost_database_connections_leave_no_reference_cycles(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("slow", STORY)

    async def broken_turn() -> None:
        talk.conversation_id = ""
        vendor.release.clear()
        async with talk.say("hello", "slow") as response:
            async for event in events(response):
                if event.name == "assistant_output_chunk":
                    break
            async with server.services.database.connection() as conn:
                await conn.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where datname = current_database() and pid <> pg_backend_pid()"
                )
            vendor.release.set()
            await response.read()

    assert await left_by(broken_turn) == {}


async def test_unavailable_valkey_leaves_no_reference_cycles(
    talk: Talk, strategy, valkey_proxy: ValkeyProxy
) -> None:
    await strategy("one", "say:Fine")
    await valkey_proxy.stop()
    assert await left_by(lambda: turn(talk, "one")) == {}
    await valkey_proxy.start()
