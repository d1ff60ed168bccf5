"""If a play crashes, its output is stored and the conversation can continue."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from actors.clients.strategies import Strategies, Strategy
from app.services import Services
from tests.app.ai.conftest import Talk
from vendors.protocols import ChatItem, ChatMessage, TextDelta


@dataclass(frozen=True)
class Faulty:
    """A vendor client with a bug: it yields `words`, then raises an unexpected exception."""

    words: Sequence[str]
    takes_prefill: bool = False

    @asynccontextmanager
    async def reply(self, _: Sequence[ChatMessage]) -> AsyncIterator[AsyncIterator[ChatItem]]:
        yield self._said()

    async def _said(self) -> AsyncIterator[ChatItem]:
        for word in self.words:
            yield TextDelta(word)
        raise KeyError("a bug")


@dataclass(frozen=True)
class FaultyStrategies:
    """The strategies of the server. `faulty` uses a vendor client with a bug."""

    real: Strategies
    client: Faulty

    def conversations(self, app_id: str, names: Sequence[str]) -> list[object]:
        found = self.real.conversations(app_id, names)
        return [
            replace(one, model=self.client) if isinstance(one, Strategy) and one.name == "faulty" else one
            for one in found
        ]


@pytest.fixture
def words() -> list[str]:
    return ["Once ", "upon"]


@pytest.fixture
def services(services: Services, words: list[str]) -> Services:
    return replace(services, strategies=FaultyStrategies(services.strategies, Faulty(words)))


@pytest.mark.parametrize(
    ("words", "status", "kept"), [(["Once ", "upon"], "incomplete", ["Once upon"]), ([], "failed", [])]
)
async def test_output_of_a_crashed_play_is_stored_and_the_next_turn_runs(
    talk: Talk, strategy, services: Services, status: str, kept: list[str]
) -> None:
    await strategy("faulty", "say:never asked")
    await strategy("one", "say:Fine thanks")
    seen = await talk.turn("hello", "faulty")
    assert (seen[-1].name, seen[-1].content["error"]["error_type"]) == ("error", "internal")
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == status
    assert [m["content"][0]["text"] for m in record["content"] if m["role"] == "assistant"] == kept
    async with services.database.connection() as conn:
        assert await conn.fetchval("select array_agg(strategy) from attempts") == ["faulty"]
    end = (await talk.turn("again", "one"))[-1]
    assert (end.name, end.content.get("record_id")) == ("end", 2)
