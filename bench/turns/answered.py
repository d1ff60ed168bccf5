"""How soon a server answers a spoken turn whose end it detects itself: speech is sent as fast as people speak."""

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from aiohttp import ClientSession, ClientTimeout

from bench.turns.recordings import Recording
from streams.audio.turn_end import SAMPLE_RATE
from streams.wire.codec import dumps, loads

_CHUNK_MS = 75
_CHUNK_BYTES = 2 * SAMPLE_RATE * _CHUNK_MS // 1000
"""A multiple of 3, so that the base64 of chunks can be joined."""
_TURN_S = 120
EVENTS = {
    "end_of_speech": "end of speech",
    "user_input": "what was heard",
    "assistant_output_chunk": "first text",
    "assistant_output_audio_chunk": "first audio",
}
"""The events of the table, in their order, and what it calls them."""


@dataclass(slots=True)
class Answer:
    """`after_ms`: milliseconds from the end of the last word to the first event of each name."""

    after_ms: dict[str, float] = field(default_factory=dict)
    outcome: str = ""
    """The name of the last event, or what went wrong."""

    def read(self, line: str, after_ms: float) -> None:
        """Read a line of the response."""
        name, _, value = line.partition(": ")
        if name == "event":
            self.outcome = value
            self.after_ms.setdefault(value, after_ms)
        elif name == "data" and self.outcome == "error":
            self.outcome = loads(value)["error"]["message"]


class Speaker:
    """Speaks to a server as one user."""

    def __init__(self, http: ClientSession, url: str, token: str) -> None:
        self._http = http
        self._url = f"{url}/bp/ai/conversation"
        self._headers = {"X-Service-Session-Token": token, "Content-Type": "application/octet-stream"}

    async def ask(self, recording: Recording, *, strategy: str, silence_ms: int) -> Answer:
        """Send one recording at the speed of speech, until the server says that the speech has ended."""
        if recording.end_ms is None:
            raise ValueError(f"nothing is said in {recording.name}")
        params = {
            "strategies": [strategy],
            "type": "audio",
            "language_code": "en-US",
            "target_language_code": "en-US",
            "turn_detection": {"silence_ms": silence_ms},
        }
        loop, answer = asyncio.get_running_loop(), Answer()
        began = loop.time()
        last_word_at = began + recording.end_ms / 1000
        data, timeout = _body(dumps(params), recording.pcm, answer, began), ClientTimeout(total=_TURN_S)
        async with self._http.post(self._url, data=data, headers=self._headers, timeout=timeout) as response:
            async for line in response.content:
                answer.read(line.decode().rstrip("\r\n"), 1000 * (loop.time() - last_word_at))
            if response.status != HTTPStatus.OK:
                answer.outcome = f"HTTP {response.status}"
        return answer


async def _body(params: bytes, pcm: bytes, answer: Answer, began: float) -> AsyncIterator[bytes]:
    """Yield the body of the request. A chunk is sent when its last sample has been spoken."""
    yield params
    loop = asyncio.get_running_loop()
    for number, at in enumerate(range(0, len(pcm), _CHUNK_BYTES)):
        if "end_of_speech" in answer.after_ms:
            return
        await asyncio.sleep(max(0.0, began + (number + 1) * _CHUNK_MS / 1000 - loop.time()))
        yield base64.b64encode(pcm[at : at + _CHUNK_BYTES])


def answers_table(answers: Sequence[tuple[str, Sequence[Answer]]]) -> str:
    """Return a table with the answers of each strategy."""
    headings = ["strategy", "answered", *(f"{name}, ms" for name in EVENTS.values())]
    lines = [headings, ["---"] + ["---:"] * (len(headings) - 1)]
    for strategy, given in answers:
        whole = [answer for answer in given if answer.outcome == "end"]
        times = [sorted(answer.after_ms[event] for answer in whole if event in answer.after_ms) for event in EVENTS]
        lines.append([f"`{strategy}`", f"{len(whole)} of {len(given)}", *(_spread(each) for each in times)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _spread(times: Sequence[float]) -> str:
    """Return the median and the longest."""
    return f"{times[len(times) // 2]:.0f} / {times[-1]:.0f}" if times else "-"
