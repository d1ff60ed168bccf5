"""The client of the fault scorecard: sends the requests of an app, and keeps all that it receives."""

import asyncio
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from aiohttp import ClientError, ClientResponse

from bench.failover.cells import Stage, VendorStage
from bench.failover.testbed import SECOND, SPOKEN, FaultTestbed
from streams.wire.codec import dumps, loads
from vendors.sandbox.content import speech

TIMEOUT_S = 15
"""A stream that takes longer counts as hanging."""
PATHS = {
    "llm": "/bp/ai/conversation",
    "stt": "/bp/ai/conversation",
    "tts": "/bp/ai/audio/tts",
    "assess": "/bp/ai/audio/pronunciation",
}
_HISTORY = "/bp/ai/conversation/query"
_TONE = speech("tone", 16_000)
_PHRASE, _PAUSE = _TONE[: 3 * 3_200], bytes(6 * 3_200)
SPEECH = _PHRASE + _PAUSE + _PHRASE
"""PCM audio: two phrases of 0.3 s with a pause of 0.6 s between them."""


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    name: str
    content: Any


@dataclass(slots=True)
class ClientOutcome:
    """The response as the client received it. `ended_ms` is the time of the last event in Unix milliseconds."""

    request_id: str = ""
    status: int = 0
    events: list[Event] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)
    """The JSON body of a response that is not an event stream."""
    broken: str = ""
    """Why the response has no end; empty if it has one."""
    ended_ms: float = 0
    conversation_id: str = ""

    @property
    def last(self) -> Event:
        return self.events[-1] if self.events else Event(0, "nothing", {})

    @property
    def error(self) -> dict[str, Any]:
        content: dict[str, Any] = self.last.content if self.last.name == "error" else self.reply
        return dict(content.get("error", {}))

    def named(self, name: str) -> list[Any]:
        return [event.content for event in self.events if event.name == name]

    @property
    def text(self) -> str:
        return "".join(content["text"] for content in self.named("assistant_output_chunk"))

    @property
    def audio(self) -> bytes:
        return b"".join(b64decode(content["audio"]) for content in self.named("audio_chunk"))


async def request_stream(
    testbed: FaultTestbed, vendor_stage: VendorStage, app: str, strategies: Sequence[str]
) -> ClientOutcome:
    """Send a request for the stage of `vendor_stage` with these strategies, and return what the client received."""
    outcome = ClientOutcome(request_id=token_hex(8))
    headers = {**testbed.headers(app), "X-Request-Id": outcome.request_id}
    options: dict[str, Any] = {"data": upload(vendor_stage.stage, strategies)}
    if vendor_stage.stage == "tts":
        options = {"json": {"text": SPOKEN, "strategies": list(strategies)}}
    try:
        async with asyncio.timeout(TIMEOUT_S):
            async with testbed.http.post(
                testbed.url + PATHS[vendor_stage.stage], headers=headers, **options
            ) as response:
                await read(response, outcome)
    except TimeoutError:
        outcome.broken = f"the stream hangs: no end within {TIMEOUT_S} s"
    except ClientError as error:
        outcome.broken = f"the connection broke: {error!r}"
    return outcome


async def read(response: ClientResponse, outcome: ClientOutcome) -> None:
    """Read the events of a stream, or a JSON body, into `outcome`."""
    outcome.status = response.status
    outcome.conversation_id = response.headers.get("X-Service-Conversation-Id", "")
    if response.content_type != "text/event-stream":
        outcome.reply = loads(await response.read())
        outcome.ended_ms = time.time() * 1000
        return
    frame: dict[str, str] = {}
    async for line in response.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            frame[name] = value
            continue
        if frame["event"] != "ping":
            content = loads(frame["data"])["content"]
            outcome.events.append(Event(int(frame["id"]), frame["event"], content))
            outcome.ended_ms = time.time() * 1000
        frame = {}


def parameters(stage: Stage, strategies: Sequence[str]) -> bytes:
    """Return the parameters: the JSON object at the beginning of a chunked body."""
    if stage == "assess":
        strategy = strategies[0] if len(strategies) == 1 else f"{strategies[0]}.both"
        return dumps({"strategy": strategy, "data": {"reference_text": SECOND}})
    return dumps(
        {
            "strategies": strategies,
            "type": "audio" if stage == "stt" else "text",
            "language_code": "en-US",
            "target_language_code": "en-US",
        }
    )


async def upload(stage: Stage, strategies: Sequence[str]) -> AsyncIterator[bytes]:
    yield parameters(stage, strategies)
    if stage == "llm":
        yield b"Say something."
        return
    half = len(SPEECH) // 2
    yield b64encode(SPEECH[:half])
    yield b64encode(SPEECH[half:])


async def history(testbed: FaultTestbed, app: str, conversation_id: str) -> list[str]:
    """Return the status and the texts of a conversation's only record, or an empty list if it has none."""
    query = {"conversation_id": conversation_id}
    async with testbed.http.get(testbed.url + _HISTORY, params=query, headers=testbed.headers(app)) as response:
        if response.status == 404:
            return []
        records = (await response.json())["data"]["conversation_records"]
    texts = [
        "".join(item["text"] for item in message["content"] if item["type"] == "text")
        for record in records
        for message in record["content"]
    ]
    return [*(record["status"] for record in records), *texts]
