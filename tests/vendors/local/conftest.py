"""Fixtures: the installed engines, loaded once per run, and their server."""

import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, FormData

from streams.wire.codec import dumps, loads
from vendors.local.endpoints.server import listening
from vendors.local.engines.engines import Engines, find_engines
from vendors.local.engines.pronunciation import Pronunciation
from vendors.local.engines.protocols import RecognizerEngine, Transcription


@dataclass(frozen=True)
class Local:
    url: str
    http: ClientSession

    def post(self, path: str, **body: Any):
        headers = {"Content-Type": "application/json"}
        return self.http.post(f"{self.url}{path}", data=dumps(body), headers=headers)

    def chat(self, *said: str, model: str = "scripted:0", **fields: Any):
        """Send a chat completion with the user messages `said`."""
        messages = [{"role": "user", "content": text} for text in said]
        return self.post("/chat/completions", **{"model": model, "messages": messages, **fields})

    def speech(self, text: str, model: str = "espeak", **fields: Any):
        return self.post("/audio/speech", model=model, input=text, **fields)

    def transcription(self, audio: bytes, **fields: str):
        form = FormData()
        form.add_field("file", io.BytesIO(audio), filename="audio.wav")
        for name, value in {"model": "whisper", **fields}.items():
            form.add_field(name, value)
        return self.http.post(f"{self.url}/audio/transcriptions", data=form)


async def events(response: ClientResponse) -> list[dict[str, Any]]:
    """Return the JSON of every event. `[DONE]` becomes an empty object."""
    assert response.status == 200, await response.text()
    assert response.content_type == "text/event-stream"
    *frames, rest = (await response.read()).split(b"\n\n")
    assert rest == b""
    assert all(frame.startswith(b"data: ") and b"\n" not in frame for frame in frames)
    return [{} if frame == b"data: [DONE]" else loads(frame[6:]) for frame in frames]


async def refusal(response: ClientResponse) -> tuple[int, dict[str, Any]]:
    """Return the status and the error of a refused request."""
    error = (await response.json())["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return response.status, error


class CachedRecognizer:
    """A recognizer that transcribes each recording once. Many tests assess the same one with other options."""

    def __init__(self, recognizer: RecognizerEngine) -> None:
        self._recognizer = recognizer
        self._transcribed: dict[bytes, Transcription] = {}

    @property
    def fault(self) -> str | None:
        return self._recognizer.fault

    async def transcribe(self, audio: bytes, *, prompt: str | None) -> Transcription:
        assert prompt is None, "assessments have no prompt"
        if audio not in self._transcribed:
            self._transcribed[audio] = await self._recognizer.transcribe(audio, prompt=None)
        return self._transcribed[audio]

    def close(self) -> None:
        """Close nothing: the engines close the recognizer."""


@pytest.fixture(scope="session")
def engines() -> Iterator[Engines]:
    found = find_engines()
    for unused in found.assessors.values():
        unused.close()
    assessors = {name: Pronunciation(CachedRecognizer(found.recognizer("whisper"))) for name in found.assessors}
    used = replace(found, assessors=assessors)
    yield used
    used.close()


@pytest.fixture(scope="session")
def needs(engines: Engines) -> Callable[..., None]:
    """Returns a function that skips the test if an engine is not installed."""

    def check(*names: str) -> None:
        for name in names:
            if name in engines.missing:
                pytest.skip(engines.missing[name])

    return check


@pytest.fixture
async def serving() -> AsyncIterator[Callable[[Engines], Awaitable[Local]]]:
    """Returns a function that runs a server of given engines."""
    async with AsyncExitStack() as stack:

        async def serve(engines: Engines) -> Local:
            url = await stack.enter_async_context(listening(engines))
            return Local(url, await stack.enter_async_context(ClientSession()))

        yield serve


@pytest.fixture
async def local(serving: Callable[[Engines], Awaitable[Local]], engines: Engines) -> Local:
    return await serving(engines)
