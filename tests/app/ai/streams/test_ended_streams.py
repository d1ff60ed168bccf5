"""Operators list streams that have ended, with their attempts and their cost."""

from datetime import timedelta
from typing import Any

import pytest

from tests.app.ai.conftest import Talk
from tests.app.operator_calls import call
from tests.calendar.clock import utc_now
from tests.peers.vendor import Vendor
from tests.running.servers import Server

ENDED = "/admin/api/ended_streams"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def ended(server: Server, query: str = "") -> Any:
    status, answer = await call(server, "GET", f"{ENDED}?{query}")
    assert status == 200, answer
    return answer


async def spoken(talk: Talk, *strategies: str) -> str:
    async with talk.say("Hello", *strategies, conversation_id="") as response:
        await response.read()
        return response.headers["X-Service-Stream-Id"]


async def store(server: Server, stream_id: str, number: int, uid: str, **fields: Any) -> None:
    """Store an attempt, as an earlier version did."""
    row = {"stage": "tts", "strategy": "voice", "vendor": "v", "outcome": "won", "price": "0.25", **fields}
    async with server.services.database.connection() as conn:
        await conn.execute(
            "insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, outcome, elapsed_ms,"
            " input_unit, output_unit, price, usage_source)"
            " values ('default', $1, $2, $3, $4, $5, $6, $7, 5, 1, 1, $8::text::numeric, 'vendor')",
            stream_id, number, uid, row["stage"], row["strategy"], row["vendor"], row["outcome"], row["price"],
        )  # fmt: skip


async def test_ended_streams_have_their_outcome_their_answerer_and_their_cost(
    server: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("refused", "refuse:500")
    await strategy("good", "say:Hello", price={"input": 0.5, "output": 2})
    first, second = await spoken(talk, "refused", "good"), await spoken(talk, "refused")
    newest, oldest = (await ended(server))["streams"]
    assert (newest["stream_id"], newest["outcome"], newest["strategy"]) == (second, "failed", "refused")
    assert float(oldest.pop("price")) > 0
    assert oldest.pop("elapsed_ms") >= 0
    assert oldest.pop("stored_at")
    assert oldest == {
        "stream_id": first,
        "app": "default",
        "user_id": talk.uid,
        "kind": "conversation",
        "outcome": "answered",
        "strategy": "good",
        "vendor": "vendor_b_llm",
        "model": "say:Hello",
        "attempts": 2,
        "failed": 1,
        "currency": "USD",
    }


async def test_ended_streams_are_chosen_and_paged_by_their_ids(server: Server) -> None:
    began = round((utc_now() - timedelta(hours=3)).timestamp() * 1000)
    ids = [f"{began + number:012x}{number:020x}" for number in range(6)]
    for number, stream_id in enumerate(ids):
        await store(server, stream_id, 1, "ada" if number % 2 else "bob")
        await store(server, stream_id, 2, "ada" if number % 2 else "bob", price="0.5")
    await store(server, ids[2], 3, "bob", stage="llm", strategy="s", outcome="failed")
    answer = await ended(server, "size=4")
    assert [row["stream_id"] for row in answer["streams"]] == ids[:1:-1]
    assert [row["price"] for row in answer["streams"]] == ["0.75", "0.75", "0.75", "1"]
    answer = await ended(server, f"size=4&before={answer['next']}")
    assert [row["stream_id"] for row in answer["streams"]] == ids[1::-1]
    assert "next" not in answer
    assert [row["stream_id"] for row in (await ended(server, "user_id=ada&size=2"))["streams"]] == [ids[5], ids[3]]
    assert [row["stream_id"] for row in (await ended(server, "outcome=failed"))["streams"]] == [ids[2]]
    assert [row["kind"] for row in (await ended(server, "kind=conversation"))["streams"]] == ["conversation"]
    assert (await ended(server, "hours=2"))["streams"] == []
    assert len((await ended(server, "hours=4"))["streams"]) == 6
    assert "model" not in (await ended(server, "kind=tts"))["streams"][0], "earlier versions stored none"


async def test_a_page_looks_at_a_limited_number_of_streams_and_is_continued(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.conversations.ended_streams._SCANNED", 3)
    ids = [f"{number:032x}" for number in range(1, 8)]
    for stream_id in ids:
        await store(server, stream_id, 1, "ada" if stream_id == ids[0] else "bob")
    pages, before = [], ""
    while True:
        answer = await ended(server, f"user_id=ada{before}")
        pages.append([row["stream_id"] for row in answer["streams"]])
        if "next" not in answer:
            break
        before = f"&before={answer['next']}"
    assert pages == [[], [], [ids[0]]]


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("app=none", 404, "item_not_found: app none does not exist"),
        ("hours=0", 400, "invalid_parameter: hours must be at least 1"),
        ("outcome=x", 400, "invalid_parameter: outcome must be one of 'answered', 'failed' or 'canceled'"),
        ("before=x", 400, "invalid_parameter: before must be `next` of a page of this list"),
    ],
)
async def test_wrong_queries_are_refused(server: Server, query: str, status: int, message: str) -> None:
    answered, answer = await call(server, "GET", f"{ENDED}?{query}")
    assert (answered, answer["error"]["message"]) == (status, message)
