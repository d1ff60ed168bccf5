"""Users who hold a stream each, one after another, and users who call the other endpoints meanwhile."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import ClientError, ClientSession

from bench.deployment import APP
from bench.nodes.proxy import NODE_HEADER
from bench.nodes.testbed import BOARD
from bench.soak.callers import Request, wait_for
from bench.soak.http import UserClient
from bench.soak.observations import Observations, Stream
from bench.soak.transcript import Transcript
from streams.wire.codec import dumps, loads

_PAUSE_S = 0.2
_REFUSED_S = 0.5
_ANSWER_S = 60


def headers_of(token: str) -> dict[str, str]:
    return {"X-Service-App-Id": APP, "X-Service-Session-Token": token}


@dataclass(slots=True)
class StreamCaller:
    """One user, who begins a stream when the last one has ended.

    A request is repeated with its `Idempotency-Key` until it is answered, and a stream that breaks off is resumed
    after the last event that has arrived, on whichever node the proxy chooses.
    """

    client: UserClient
    observations: Observations
    scenario: str
    user: int
    model: str
    _number: int = 0

    async def run(self, *, first_s: float, over: asyncio.Event) -> None:
        """Begin streams from `first_s` until `over` is set, and read the last one to its end."""
        await wait_for(over, first_s - self.observations.now_s())
        while not over.is_set():
            await self._stream()

    async def _stream(self) -> None:
        self._number += 1
        stream = Stream("text", self.user, self.observations.now_s(), self._number)
        transcript = Transcript()
        self.observations.started["text"] += 1
        self.observations.live += 1
        try:
            await self._follow(stream, transcript)
        except asyncio.CancelledError:
            stream.faults.append("not ended when the run was over")
            raise
        finally:
            self.observations.live -= 1
            stream.end_s = self.observations.now_s()
            stream.outcome, stream.unnumbered = transcript.outcome, transcript.unnumbered
            stream.message = transcript.receipt.get("message", "")
            stream.faults += transcript.faults
            self.observations.streams.append(stream)

    async def _follow(self, stream: Stream, transcript: Transcript) -> None:
        """Read the stream to its terminal event, over as many responses as needed."""
        stream.request_id = self.client.new_request_id()
        response = await self.client.begin(self._request(), stream.request_id)
        if response is None:
            stream.faults.append("refused until the caller gave up")
            return
        stream.stream_id = response.headers["X-Service-Stream-Id"]
        stream.node = response.headers.get(NODE_HEADER, "")
        transcript.begin()
        while True:
            await self.client.read(response, transcript, leave_after_s=None)
            if transcript.complete:
                return
            stream.cut_at_s.append(self.observations.now_s())
            stream.resumes += 1
            resumed = await self.client.resume(stream.stream_id, transcript.last_id)
            if resumed is None:
                stream.faults.append("resume refused until the caller gave up")
                return
            transcript.begin(after=transcript.last_id)
            response = resumed

    def _request(self) -> Request:
        text = text_of(self.scenario, self.user, self._number)
        parameters = {
            "strategies": [self.model],
            "type": "text",
            "language_code": "en-US",
            "target_language_code": "en-US",
        }
        return Request("/bp/ai/conversation", dumps(parameters) + text.encode(), key=uuid4().hex)


def text_of(scenario: str, user: int, number: int) -> str:
    """Return what a user says, by which the vendor's calls and the records are counted."""
    return f"{scenario} turn {number} of user {user}: what happened then?"


@dataclass(slots=True)
class RestFigures:
    """What the users of the other endpoints have seen."""

    answered: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    """Answers of 503 with `Retry-After`."""
    errors: list[tuple[float, int, str]] = field(default_factory=list)
    """All other errors: when the request was sent, its status (0: no response), and what it is."""
    seconds: list[float] = field(default_factory=list)


@dataclass(slots=True)
class RestCaller:
    """One user, who signs in and reads, one request after another. A refused request is repeated."""

    http: ClientSession
    url: str
    token: str
    figures: RestFigures
    _device: str = field(default_factory=lambda: uuid4().hex)

    async def run(self, *, over: asyncio.Event) -> None:
        calls: Sequence[tuple[str, str, str, Any]] = (
            ("sign-in", "POST", "/bp/user/login", {"device": {"id": self._device}}),
            ("history", "GET", "/bp/ai/conversations", None),
            ("assets", "GET", "/bp/asset", None),
            ("leaderboard", "POST", "/bp/leaderboard", {"name": BOARD, "from": 1, "to": 10}),
        )
        while not over.is_set():
            for name, method, path, body in calls:
                await self._ask(name, method, path, body, over=over)
                await wait_for(over, _PAUSE_S)

    async def _ask(self, name: str, method: str, path: str, body: Any, *, over: asyncio.Event) -> None:
        headers = headers_of(self.token) if name != "sign-in" else {"X-Service-App-Id": APP}
        while not over.is_set():
            begun = time.monotonic()
            refused = await self._answered(name, method, path, body, headers)
            self.figures.seconds.append(time.monotonic() - begun)
            if not refused:
                return
            await wait_for(over, _REFUSED_S)

    async def _answered(self, name: str, method: str, path: str, body: Any, headers: Mapping[str, str]) -> bool:
        """Send a request once. Return whether it was refused and can be repeated."""
        begun = time.monotonic()
        try:
            async with (
                asyncio.timeout(_ANSWER_S),
                self.http.request(method, self.url + path, json=body, headers=headers) as response,
            ):
                content = await response.read()
        except (ClientError, OSError, TimeoutError) as error:
            self.figures.errors.append((begun, 0, f"{name}: {error!r}"))
            return False
        if response.ok:
            self.figures.answered[name] += 1
            return False
        if response.status == 503 and "Retry-After" in response.headers:
            self.figures.refused += 1
            return True
        where = response.headers.get(NODE_HEADER, "proxy")
        said = f"{name}: {response.status} from {where}: {_said(content)}"
        self.figures.errors.append((begun, response.status, said))
        return False


def _said(content: bytes) -> str:
    try:
        return str(loads(content)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return content[:100].decode(errors="replace")
