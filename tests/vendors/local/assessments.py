"""Assessments by the local assessor of what a local voice reads aloud, and the parts of their results."""

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

from aiohttp import FormData

from tests.vendors.local.conftest import Local
from tests.vendors.local.spoken_audio import REFERENCE, Reader


def form(audio: Any, **fields: str) -> FormData:
    """Return the form of an assessment. `audio` is bytes, or an iterator of pieces."""
    body = FormData()
    for name, value in {"model": "pocketsphinx", "reference_text": REFERENCE, **fields}.items():
        body.add_field(name, value)
    payload = audio if not isinstance(audio, bytes) else _in_one_piece(audio)
    body.add_field("file", payload, filename="audio.pcm", content_type="audio/pcm")
    return body


async def _in_one_piece(audio: bytes) -> AsyncIterator[bytes]:
    yield audio


def asking(local: Local, body: Any):
    return local.http.post(f"{local.url}/audio/assessments", data=body)


async def assessed(local: Local, audio: bytes, **fields: str) -> dict[str, Any]:
    async with asking(local, form(audio, **fields)) as response:
        assert response.status == 200, await response.text()
        return await response.json()


_graded: list[dict[str, Any]] = []


async def graded(local: Local, reader: Reader) -> dict[str, Any]:
    """Return the result for `REFERENCE`, read well, without options. The engine is called once."""
    if not _graded:
        _graded.append(await assessed(local, await reader(REFERENCE)))
    return _graded[0]


def scores(answer: dict[str, Any]) -> dict[str, float]:
    return answer["raw_data"]["NBest"][0]["PronunciationAssessment"]


def words(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return answer["raw_data"]["NBest"][0]["Words"]


def errors(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Return every word with its error."""
    return [(word["Word"], word["PronunciationAssessment"]["ErrorType"]) for word in words(answer)]


def sound(text: str) -> list[tuple[str, str]]:
    return [(word, "None") for word in text.lower().strip(".").split()]


def check_times(reported: list[dict[str, Any]], length: float) -> None:
    """Check that words follow each other within the audio, and that their parts fill them without overlap."""
    end = 0
    for word in reported:
        assert word["Offset"] >= end
        end = word["Offset"] + word["Duration"]
        for parts in (word["Syllables"], word["Phonemes"]):
            times = [(part["Offset"], part["Offset"] + part["Duration"]) for part in parts]
            assert times[0][0] == word["Offset"]
            assert times[-1][1] == end
            assert all(previous[1] == following[0] for previous, following in pairwise(times))
    assert end <= length
