"""Run and judge the faults of callers: half-closed and reset connections, readers that stop reading."""

import asyncio
import socket
import struct
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

from bench.failover.cells import CallerCell, Outcome, Stage
from bench.failover.client import PATHS, SPEECH, history, parameters
from bench.failover.judge import CLOSES_WITHIN_MS
from bench.failover.testbed import APPS, CALLER_APP, FIRST, SPOKEN, FaultTestbed
from streams.wire.codec import dumps
from vendors.sandbox.bill import BilledCall

_TIMEOUT_S = 10
_POLL_S = 0.02
_WINDOW_BYTES = 4_096
_GRACE_S = sum(APPS[CALLER_APP][name] for name in ("resume_grace_s", "send_timeout_s", "ping_after_s"))
_LINGER_NONE = struct.pack("ii", 1, 0)


class RawConnection:
    """A client connection without an HTTP library, which can be half-closed and reset."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop = asyncio.get_running_loop()

    async def send(self, raw: bytes) -> None:
        await self._loop.sock_sendall(self._socket, raw)

    async def chunk(self, raw: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(raw), raw))

    async def head(self) -> dict[str, str]:
        """Read the head of the response, and return its headers by lower-case name."""
        raw = b""
        while not raw.endswith(b"\r\n\r\n"):
            byte = await self._loop.sock_recv(self._socket, 1)
            if not byte:
                raise ConnectionError("closed before the end of the response head")
            raw += byte
        lines = raw.decode().split("\r\n")[1:-2]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    async def read_to_end(self) -> None:
        """Read until the server closes the connection."""
        try:
            while await self._loop.sock_recv(self._socket, 1 << 16):
                pass
        except ConnectionError:
            return

    def half_close(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self._socket.close()


@asynccontextmanager
async def _connected(testbed: FaultTestbed) -> AsyncIterator[RawConnection]:
    url = urlsplit(testbed.url)
    with socket.socket() as sock:
        sock.settimeout(0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WINDOW_BYTES)
        await asyncio.get_running_loop().sock_connect(sock, (url.hostname, url.port))
        yield RawConnection(sock)


async def judge_caller(testbed: FaultTestbed, cell: CallerCell) -> list[str]:
    """Run a caller's cell, and return its problems; an empty list if it passes.

    The cell's slow strategy must be configured already.
    """
    request_id = token_hex(8)
    try:
        async with asyncio.timeout(_TIMEOUT_S), _connected(testbed) as connection:
            await connection.send(_request_head(testbed, cell, request_id))
            conversation_id = await _upload(connection, testbed, cell, request_id)
            match cell.row.action:
                case "half-close":
                    connection.half_close()
                    await connection.read_to_end()
                case "reset":
                    connection.reset()
            if cell.expected is Outcome.ABORTED:
                return await _judge_aborted(testbed, cell, request_id, conversation_id)
            return await _judge_left(testbed, cell, request_id, conversation_id)
    except (TimeoutError, ConnectionError) as error:
        return [f"the request hangs or the connection broke: {error!r}"]


def _request_head(testbed: FaultTestbed, cell: CallerCell, request_id: str) -> bytes:
    stage = cell.vendor_stage.stage
    headers = {"Host": urlsplit(testbed.url).netloc, "X-Request-Id": request_id, **testbed.headers(CALLER_APP)}
    if stage == "tts":
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(_tts_body(cell)))}
    else:
        headers["Transfer-Encoding"] = "chunked"
    lines = [f"POST {PATHS[stage]} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def _tts_body(cell: CallerCell) -> bytes:
    times = 40 if cell.row.action == "stop reading" else 1
    return dumps({"text": " ".join([SPOKEN] * times), "strategies": [cell.name]})


async def _upload(connection: RawConnection, testbed: FaultTestbed, cell: CallerCell, request_id: str) -> str:
    """Upload the request up to the point of the fault, and return the id of the conversation."""
    stage, complete, headers = cell.vendor_stage.stage, not cell.row.uploading, dict[str, str]()
    if stage == "tts":
        body = _tts_body(cell)
        await connection.send(body if complete else body[: len(body) // 2])
    else:
        await connection.chunk(parameters(stage, [cell.name]))
        if stage != "assess":
            headers = await connection.head()
        await _input(connection, stage, complete=complete)
    if stage in {"stt", "assess"}:
        await testbed.sandbox.bill.wait(_matches(request_id))
    elif complete:
        await testbed.sandbox.bill.wait(_matches(request_id, outputs=1))
    return headers.get("x-service-conversation-id", "")


async def _input(connection: RawConnection, stage: Stage, *, complete: bool) -> None:
    data = b"Say something." if stage == "llm" else b64encode(SPEECH)
    await connection.chunk(data if complete else data[: len(data) // 2])
    if complete:
        await connection.chunk(b"")


def _matches(request_id: str, outputs: int = 0) -> Callable[[BilledCall], bool]:
    return lambda entry: entry.request_id == request_id and entry.outputs >= outputs


async def _judge_aborted(
    testbed: FaultTestbed, cell: CallerCell, request_id: str, conversation_id: str
) -> list[str]:
    problems = []
    if not await testbed.ended(request_id, within_s=CLOSES_WITHIN_MS / 1000):
        problems.append("a call is still open")
    calls = [entry.how for entry in testbed.calls(request_id)]
    expected: list[Any] = ["closed_by_client"] if cell.vendor_stage.stage in {"stt", "assess"} else []
    if calls != expected:
        problems.append(f"calls ended with {calls}, expected {expected}")
    if conversation_id and (record := await history(testbed, CALLER_APP, conversation_id)):
        problems.append(f"a record is stored: {record}")
    return problems


async def _judge_left(testbed: FaultTestbed, cell: CallerCell, request_id: str, conversation_id: str) -> list[str]:
    record = await _finished_record(testbed, conversation_id) if cell.vendor_stage.stage == "llm" else []
    problems = []
    if not await testbed.ended(request_id, within_s=_GRACE_S + CLOSES_WITHIN_MS / 1000):
        problems.append("a call is still open")
    calls = [entry.how for entry in testbed.calls(request_id)]
    if "closed_by_client" not in calls:
        problems.append(f"calls ended with {calls}, and none was closed by the server")
    if cell.vendor_stage.stage == "stt" and (stored := await history(testbed, CALLER_APP, conversation_id)):
        problems.append(f"a record is stored: {stored}")
    if cell.vendor_stage.stage != "llm":
        return problems
    status, user_text, *answer = record
    complete = FIRST if cell.row.action == "half-close" else " ".join([SPOKEN] * 20)
    if (
        (status, user_text) != ("incomplete", "Say something.")
        or not complete.startswith("".join(answer))
        or not answer
    ):
        problems.append(f"the record is {record}")
    return problems


async def _finished_record(testbed: FaultTestbed, conversation_id: str) -> list[str]:
    """Wait until the record exists and its turn has ended, and return it."""
    while (record := await history(testbed, CALLER_APP, conversation_id))[:1] in ([], ["running"]):  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(_POLL_S)
    return record
