"""Answers whose connection is cut again and again, and the proof that nothing of them is missing."""

import hashlib
import random
from collections.abc import Sequence
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.sandbox_accounts import account, chat
from tests.app.ai.speech.ears import ears
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

COUNTS = pytest.mark.parametrize("count", [5, pytest.param(200, marks=pytest.mark.soak)])
"""The number of cuts."""
QUESTION = "What is the capital of Japan?"
SENTENCE = "The sentence number %d is here."
_FIRST = 4_000
"""The first cut, in bytes from the server: the answer has begun."""
_HEADERS = 600
"""More than the headers of a response, which aiohttp requests again by itself if they are cut."""


def cuts(count: int, longest: int) -> list[int]:
    """Return the bytes before each cut. They are the same in each run."""
    places = random.Random(count)  # noqa: S311
    return [_FIRST, *(places.randint(_HEADERS, longest) for _ in range(count - 1))]


async def speaking_strategy(server: Server, sandbox: Running, name: str, sentences: int) -> str:
    """Create a strategy that hears `QUESTION` and speaks its answer. Return the answer."""
    answer = " ".join(SENTENCE % number for number in range(sentences))
    await account(server, sandbox, "voice", "vendor_b_audio")
    voice = {"account": "voice", "model": "tts-1", "voice": "alloy"}
    await server.services.configs.put("default", "speech", "voice", voice, author="test", origin=COMMAND)
    await ears(server, sandbox, name, key=key_of(text=QUESTION))
    model = key_of(text=answer, pace_ms=5)
    await chat(server, sandbox, name, "vendor_b_llm", model, speech="voice", recognition=name)
    return answer


def check_cuts(
    count: int,
    outputs: Sequence[tuple[int, str | bytes]],
    *,
    digest: dict[str, Any],
    end_id: int,
    connections: Sequence[Sequence[Any]],
) -> None:
    """Check that all cuts were in mid-answer, and that `outputs`, by their ids, are those of the digest."""
    lost = [after_id for state, after_id in connections if state == "lost"]
    in_answer = [after_id for after_id in lost if outputs[0][0] <= after_id < end_id]
    assert (len(in_answer), len(lost)) == (count, count)
    ids = [output_id for output_id, _ in outputs]
    assert ids == sorted(set(ids))
    texts = [output for _, output in outputs if isinstance(output, str)]
    pieces = [output.encode() if isinstance(output, str) else output for _, output in outputs]
    own = {"chars": len("".join(texts)), "sha256": hashlib.sha256(b"".join(pieces)).hexdigest()}
    assert own == digest
