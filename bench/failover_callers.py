"""Plays what callers do to us: half-closed and reset connections, readers that stop reading."""

import asyncio
import socket
import struct
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

from bench.failover_cells import CallerCell, Outcome, Stage
from bench.failover_client import PATHS, SPEECH, history, parameters
from bench.failover_judge import CLOSES_WITHIN_MS
from bench.failover_stand import APPS, CALLER_APP, FIRST, SPOKEN, Stand
from streams.wire.codec import dumps
from vendors.sandbox.bill import Entry

_LONGEST_S = 10
_ASK_AGAIN_S = 0.02
_WINDOW_BYTES = 4_096
_GRACE_S = sum(APPS[CALLER_APP][name] for name in ("resume_grace_s", "send_timeout_s", "ping_after_s"))
_AT_ONCE = struct.pack("ii", 1, 0)


class Line:
    """A connection that keeps no manners of its own."""

    def __init__(self, held: socket.socket) -> None:
        self._socket = held
        self._loop = asyncio.get_running_loop()

    async def send(self, raw: bytes) -> None:
        await self._loop.sock_sendall(self._socket, raw)

    async def chunk(self, raw: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(raw), raw))

    async def head(self) -> dict[str, str]:
        """The headers of the answer, by their names in small letters."""
        raw = b""
        while not raw.endswith(b"\r\n\r\n"):
            byte = await self._loop.sock_recv(self._socket, 1)
            if not byte:
                raise ConnectionError("it was closed before its head")
            raw += byte
        lines = raw.decode().split("\r\n")[1:-2]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    async def rest(self) -> None:
        """Read until the server closes."""
        try:
            while await self._loop.sock_recv(self._socket, 1 << 16):
                pass
        except ConnectionError:
            return

    def half_close(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._socket.close()


@asynccontextmanager
async def _line(stand: Stand) -> AsyncIterator[Line]:
    url = urlsplit(stand.url)
    with socket.socket() as held:
        held.settimeout(0)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WINDOW_BYTES)
        await asyncio.get_running_loop().sock_connect(held, (url.hostname, url.port))
        yield Line(held)


async def judge_caller(stand: Stand, cell: CallerCell) -> list[str]:
    """What is wrong in a caller's cell: nothing, if all is well. Its slow strategy is offered already."""
    request_id = token_hex(8)
    try:
        async with asyncio.timeout(_LONGEST_S), _line(stand) as line:
            await line.send(_request_head(stand, cell, request_id))
            conversation_id = await _upload(line, stand, cell, request_id)
            match cell.row.manner:
                case "half-close":
                    line.half_close()
                    await line.rest()
                case "reset":
                    line.reset()
            if cell.expected is Outcome.ABORTED:
                return await _aborted(stand, cell, request_id, conversation_id)
            return await _left(stand, cell, request_id, conversation_id)
    except (TimeoutError, ConnectionError) as error:
        return [f"it hangs, or broke: {error!r}"]


def _request_head(stand: Stand, cell: CallerCell, request_id: str) -> bytes:
    stage = cell.lane.stage
    headers = {"Host": urlsplit(stand.url).netloc, "X-Request-Id": request_id, **stand.headers(CALLER_APP)}
    if stage == "tts":
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(_tts_body(cell)))}
    else:
        headers["Transfer-Encoding"] = "chunked"
    lines = [f"POST {PATHS[stage]} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def _tts_body(cell: CallerCell) -> bytes:
    times = 40 if cell.row.manner == "stop reading" else 1
    return dumps({"text": " ".join([SPOKEN] * times), "strategies": [cell.name]})


async def _upload(line: Line, stand: Stand, cell: CallerCell, request_id: str) -> str:
    """All that is uploaded, up to where the fault comes; the id of the conversation."""
    stage, whole, headers = cell.lane.stage, not cell.row.uploading, dict[str, str]()
    if stage == "tts":
        body = _tts_body(cell)
        await line.send(body if whole else body[: len(body) // 2])
    else:
        await line.chunk(parameters(stage, [cell.name]))
        if stage != "assess":
            headers = await line.head()
        await _input(line, stage, whole=whole)
    if stage in {"stt", "assess"}:
        await stand.sandbox.bill.wait(_of(request_id))
    elif whole:
        await stand.sandbox.bill.wait(_of(request_id, outputs=1))
    return headers.get("x-service-conversation-id", "")


async def _input(line: Line, stage: Stage, *, whole: bool) -> None:
    said = b"Say something." if stage == "llm" else b64encode(SPEECH)
    await line.chunk(said if whole else said[: len(said) // 2])
    if whole:
        await line.chunk(b"")


def _of(request_id: str, outputs: int = 0) -> Callable[[Entry], bool]:
    return lambda entry: entry.request_id == request_id and entry.outputs >= outputs


async def _aborted(stand: Stand, cell: CallerCell, request_id: str, conversation_id: str) -> list[str]:
    wrong = []
    if not await stand.ended(request_id, within_s=CLOSES_WITHIN_MS / 1000):
        wrong.append("a call is still open")
    calls = [entry.how for entry in stand.calls(request_id)]
    right: list[Any] = ["closed_by_client"] if cell.lane.stage in {"stt", "assess"} else []
    if calls != right:
        wrong.append(f"calls ended {calls}, and not {right}")
    if conversation_id and (kept := await history(stand, CALLER_APP, conversation_id)):
        wrong.append(f"it is kept: {kept}")
    return wrong


async def _left(stand: Stand, cell: CallerCell, request_id: str, conversation_id: str) -> list[str]:
    kept = await _kept(stand, conversation_id) if cell.lane.stage == "llm" else []
    wrong = []
    if not await stand.ended(request_id, within_s=_GRACE_S + CLOSES_WITHIN_MS / 1000):
        wrong.append("a call is still open")
    calls = [entry.how for entry in stand.calls(request_id)]
    if "closed_by_client" not in calls:
        wrong.append(f"calls ended {calls}, and none was closed")
    if cell.lane.stage == "stt" and (found := await history(stand, CALLER_APP, conversation_id)):
        wrong.append(f"it is kept: {found}")
    if cell.lane.stage != "llm":
        return wrong
    status, asked, *said = kept
    whole = FIRST if cell.row.manner == "half-close" else " ".join([SPOKEN] * 20)
    if (status, asked) != ("incomplete", "Say something.") or not whole.startswith("".join(said)) or not said:
        wrong.append(f"the record is {kept}")
    return wrong


async def _kept(stand: Stand, conversation_id: str) -> list[str]:
    """The record, once it is there and the turn is over."""
    while (kept := await history(stand, CALLER_APP, conversation_id))[:1] in ([], ["running"]):  # noqa: ASYNC110 - only asking tells
        await asyncio.sleep(_ASK_AGAIN_S)
    return kept
