"""The callers of a soak: users who start, leave, resume, cancel and repeat streams until the run is over."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from aiohttp import ClientResponse

from bench.scenarios import SCENARIOS, Load
from bench.soak.http import UserClient
from bench.soak.observations import AcknowledgedTurn, Kind, Observations, Stream
from bench.soak.transcript import Transcript
from streams.tasks import background
from streams.wire.codec import dumps

_WEIGHTS: dict[Kind, int] = {"text": 52, "tts": 10, "audio": 8, "leave": 14, "cancel": 8, "again": 8}
_MAX_TURNS = 6
"""The highest number of turns in one conversation."""
_TRANSCRIPT = "How are you today?"
"""The vendor's transcript of every recording."""
_PIECE_S = 0.1


@dataclass(frozen=True, slots=True)
class Lengths:
    """The models of `bench.upstream` to choose from, which determine the length of the answers."""

    chat: Sequence[str] = ("50x200", "60x400", "75x800")
    weights: Sequence[int] = (45, 40, 15)
    speech: str = "15x800"
    leave_within_s: float = 6
    """The longest time after which a caller leaves or cancels a stream."""
    return_within_s: float = 4
    """The longest time after which a caller comes back."""
    recordings_s: tuple[float, ...] = (1, 1, 1, 30)
    """How long callers speak, as often as each is listed. Some still speak when their process is replaced."""


SHORT = Lengths(
    chat=("10x100", "20x100"),
    weights=(1, 1),
    speech="5x100",
    leave_within_s=1,
    return_within_s=1,
    recordings_s=(1,),
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a stream. A request with a `key` can be repeated."""

    path: str
    body: bytes
    key: str = ""
    recording: Sequence[bytes] = ()
    """Sent after the body, one piece every 100 ms."""

    async def pieces(self) -> AsyncIterator[bytes]:
        yield self.body
        for piece in self.recording:
            await asyncio.sleep(_PIECE_S)
            yield piece


class Caller:
    """One user, who runs one stream after another."""

    def __init__(
        self, client: UserClient, observations: Observations, *, user: int, lengths: Lengths, seed: int
    ) -> None:
        self._client = client
        self._observations = observations
        self._user = user
        self._lengths = lengths
        self._random = random.Random(f"{seed} {user}")  # noqa: S311 - a repeatable load, not used for security
        self._conversation_id = ""
        self._turns_left = 0
        self._number = 0

    async def run(self, *, first_s: float, over: asyncio.Event) -> None:
        """Begin streams from `first_s` until `over` is set, and read the last one to its end."""
        await wait_for(over, first_s - self._observations.now_s())
        kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        while not over.is_set():
            await self._stream(self._random.choices(kinds, weights)[0])

    async def _stream(self, kind: Kind) -> None:
        self._number += 1
        stream = Stream(kind, self._user, self._observations.now_s(), self._number)
        self._observations.started[kind] += 1
        self._observations.live += 1
        transcript = Transcript()
        text = _TRANSCRIPT if kind == "audio" else f"Turn {self._number} of user {self._user}: what happened then?"
        try:
            response = await self._begin(stream, self._request(kind, text))
            if response is not None:
                await self._follow(stream, transcript, response)
        except asyncio.CancelledError:
            stream.faults.append("not ended when the run was over")
            raise
        finally:
            self._observations.live -= 1
            self._record(stream, transcript, text)

    def _request(self, kind: Kind, text: str) -> Request:
        model = self._random.choices(self._lengths.chat, self._lengths.weights)[0]
        accounts = self._random.sample(("one", "two"), 2)
        key = f"soak-{self._user}-{self._number}" if kind == "again" else ""
        if kind == "tts":
            names = [f"{account}-{self._lengths.speech}" for account in accounts]
            return Request("/bp/ai/audio/tts", dumps({"strategies": names, "text": text}), key)
        parameters: dict[str, Any] = {
            "strategies": [f"{account}-{model}" for account in accounts],
            "type": "audio" if kind == "audio" else "text",
            "language_code": "en-US",
            "target_language_code": "en-US",
        }
        if self._turns_left:
            parameters["conversation_id"] = self._conversation_id
        if kind == "audio":
            _, *recording = SCENARIOS["audio"].body(
                Load("", [], audio_s=self._random.choice(self._lengths.recordings_s))
            )
            return Request("/bp/ai/conversation", dumps(parameters), recording=recording)
        return Request("/bp/ai/conversation", dumps(parameters) + text.encode(), key)

    async def _begin(self, stream: Stream, request: Request) -> ClientResponse | None:
        stream.request_id = self._client.new_request_id()
        if stream.kind == "again":
            # Half of these callers lose the connection before the head of the response arrives.
            cut_after_s = self._random.uniform(0, 0.03) if self._random.random() < 0.5 else None
            first = await self._client.cut_short(request, stream.request_id, cut_after_s=cut_after_s)
            response = await self._client.begin(request, stream.request_id)
            if first and response is not None and response.headers["X-Service-Stream-Id"] != first:
                stream.first_stream_id = first
        else:
            response = await self._client.begin(request, stream.request_id)
        if response is None:
            stream.faults.append("refused until the caller gave up")
            return None
        stream.stream_id = response.headers["X-Service-Stream-Id"]
        stream.conversation_id = response.headers.get("X-Service-Conversation-Id", "")
        return response

    async def _follow(self, stream: Stream, transcript: Transcript, response: ClientResponse) -> None:
        """Read the stream to its terminal event, over as many responses as needed."""
        leaves = 2 if stream.kind == "leave" else 0
        transcript.begin()
        async with background(self._cancel(stream)) if stream.kind == "cancel" else nullcontext():
            while True:
                leave_after_s = self._random_delay() if leaves else None
                left = await self._client.read(response, transcript, leave_after_s=leave_after_s)
                if transcript.complete:
                    return
                if left:
                    leaves -= 1
                    await asyncio.sleep(self._random.uniform(0.1, self._lengths.return_within_s))
                else:
                    stream.cut_at_s.append(self._observations.now_s())
                stream.resumes += 1
                resumed = await self._client.resume(stream.stream_id, transcript.last_id)
                if resumed is None:
                    stream.faults.append("resume refused until the caller gave up")
                    return
                transcript.begin(after=transcript.last_id)
                response = resumed

    def _random_delay(self) -> float:
        return self._random.uniform(0.2, self._lengths.leave_within_s)

    async def _cancel(self, stream: Stream) -> None:
        await asyncio.sleep(self._random_delay())
        await self._client.cancel(stream.stream_id)

    def _record(self, stream: Stream, transcript: Transcript, text: str) -> None:
        receipt = transcript.receipt
        stream.end_s = self._observations.now_s()
        stream.outcome, stream.unnumbered = transcript.outcome, transcript.unnumbered
        stream.faults += transcript.faults
        stream.message = receipt.get("message", "")
        self._observations.streams.append(stream)
        if stream.kind == "tts":
            return
        record_id = receipt.get("record_id") or receipt.get("extra", {}).get("record_id")
        self._choose_conversation(stream.conversation_id if record_id else "")
        if stream.outcome != "end":
            return
        canceled = receipt["finish_reason"] == "canceled"
        if record_id is None:
            if not canceled:  # A stream that is cancelled before its input is recognized has no record.
                stream.faults.append("`end` without a record")
            return
        self._observations.turns.append(
            AcknowledgedTurn(
                self._user,
                stream.conversation_id,
                record_id,
                stream.stream_id,
                stream.request_id,
                stream.end_s,
                status="interrupted" if canceled else "complete",
                user_text=text,
                text_sha256=sha256("".join(transcript.written).encode()).hexdigest(),
            )
        )

    def _choose_conversation(self, conversation_id: str) -> None:
        """Continue this conversation in the next turn if it has turns left; otherwise begin a new one."""
        if conversation_id and conversation_id == self._conversation_id:
            self._turns_left -= 1
        elif conversation_id:
            self._conversation_id, self._turns_left = conversation_id, self._random.randrange(_MAX_TURNS)
        else:
            self._turns_left = 0


async def wait_for(event: asyncio.Event, within_s: float) -> None:
    """Wait until `event` is set or `within_s` has passed."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0, within_s)):
            await event.wait()


def make_callers(
    clients: Sequence[UserClient], observations: Observations, *, lengths: Lengths, seed: int
) -> list[Caller]:
    """Return a caller for each client."""
    return [
        Caller(client, observations, user=user, lengths=lengths, seed=seed) for user, client in enumerate(clients)
    ]
