"""A client of the fault scorecard: asks as apps do, and keeps all that it gets."""

import asyncio
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from aiohttp import ClientError, ClientResponse

from bench.failover_cells import Lane, Stage
from bench.failover_stand import SECOND, SPOKEN, Stand
from streams.wire.codec import dumps, loads
from vendors.sandbox.content import speech

LONGEST_S = 15
"""A stream that has not ended by then hangs."""
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
"""PCM: two phrases of 0.3 s, and a pause of 0.6 s between them."""


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    name: str
    content: Any


@dataclass(slots=True)
class ClientOutcome:
    """What a client got. `ended_ms`: when the last event was there, in Unix milliseconds."""

    request_id: str = ""
    status: int = 0
    events: list[Event] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)
    """Of a stage that answers with JSON in place of events."""
    broken: str = ""
    ended_ms: float = 0
    conversation_id: str = ""

    @property
    def last(self) -> Event:
        return self.events[-1] if self.events else Event(0, "nothing", {})

    @property
    def error(self) -> dict[str, Any]:
        told: dict[str, Any] = self.last.content if self.last.name == "error" else self.reply
        return dict(told.get("error", {}))

    def named(self, name: str) -> list[Any]:
        return [event.content for event in self.events if event.name == name]

    @property
    def text(self) -> str:
        return "".join(content["text"] for content in self.named("assistant_output_chunk"))

    @property
    def audio(self) -> bytes:
        return b"".join(b64decode(content["audio"]) for content in self.named("audio_chunk"))


async def asked(stand: Stand, lane: Lane, app: str, strategies: Sequence[str]) -> ClientOutcome:
    """What a client gets who asks for what the lane's stage does."""
    answer = ClientOutcome(request_id=token_hex(8))
    headers = {**stand.headers(app), "X-Request-Id": answer.request_id}
    options: dict[str, Any] = {"data": upload(lane.stage, strategies)}
    if lane.stage == "tts":
        options = {"json": {"text": SPOKEN, "strategies": list(strategies)}}
    try:
        async with asyncio.timeout(LONGEST_S):
            async with stand.http.post(stand.url + PATHS[lane.stage], headers=headers, **options) as response:
                await read(response, answer)
    except TimeoutError:
        answer.broken = f"it hangs: no end in {LONGEST_S} s"
    except ClientError as error:
        answer.broken = f"the connection broke: {error!r}"
    return answer


async def read(response: ClientResponse, into: ClientOutcome) -> None:
    """The events of a stream, or what stands in place of one."""
    into.status = response.status
    into.conversation_id = response.headers.get("X-Service-Conversation-Id", "")
    if response.content_type != "text/event-stream":
        into.reply = loads(await response.read())
        into.ended_ms = time.time() * 1000
        return
    frame: dict[str, str] = {}
    async for line in response.content:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            frame[name] = value
            continue
        if frame["event"] != "ping":
            content = loads(frame["data"])["content"]
            into.events.append(Event(int(frame["id"]), frame["event"], content))
            into.ended_ms = time.time() * 1000
        frame = {}


def parameters(stage: Stage, strategies: Sequence[str]) -> bytes:
    """The first JSON object of a chunked body."""
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


async def history(stand: Stand, app: str, conversation_id: str) -> list[str]:
    """Status and texts of the only record of a conversation; nothing where there is none."""
    query = {"conversation_id": conversation_id}
    async with stand.http.get(stand.url + _HISTORY, params=query, headers=stand.headers(app)) as response:
        if response.status == 404:
            return []
        records = (await response.json())["data"]["conversation_records"]
    texts = [
        "".join(item["text"] for item in message["content"] if item["type"] == "text")
        for record in records
        for message in record["content"]
    ]
    return [*(record["status"] for record in records), *texts]
