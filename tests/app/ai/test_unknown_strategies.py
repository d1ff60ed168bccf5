"""A strategy that does not exist is the same error on every endpoint of the AI area."""

from typing import Any

import pytest

from streams.wire.codec import dumps
from tests.app.ai.conftest import Talk
from tests.running.servers import Server

TURN = {"strategies": ["none"], "language_code": "en-US", "target_language_code": "en-US", "type": "text"}
SPOKEN = {"strategy": "none", "data": {"reference_text": "good morning"}}
IMAGE = {"strategy": "none", "type": "imagine", "data": {"prompt": "a cat"}}
LATER = {"strategy": "none", "module": "prediction", "data": {"version": "1", "input": {}}}
CALLS: dict[str, dict[str, Any]] = {
    "/bp/ai/conversation": {"data": dumps(TURN) + b"Hello"},
    "/bp/ai/audio/tts": {"json": {"strategies": ["none"], "text": "Hello"}},
    "/bp/ai/audio/pronunciation": {"data": dumps(SPOKEN)},
    "/bp/ai/prediction": {"json": {"strategy": "none", "version": "1"}},
    "/bp/ai/async/modelhub": {"json": LATER},
    "/bp/ai/imagine": {"json": IMAGE},
}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.mark.parametrize("path", CALLS)
async def test_a_strategy_that_does_not_exist_is_not_found(talk: Talk, path: str) -> None:
    async with talk.post(path, **CALLS[path]) as response:
        error = (await response.json())["error"]
    assert (response.status, error["error_type"]) == (404, "item_not_found")
    assert error["message"].endswith("strategy none does not exist")
