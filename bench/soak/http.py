"""One user's requests to a server that may be replaced or lose its stores: asked again until they are answered."""

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING, Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector

from bench.soak.notes import Answer, Asked, Docs
from bench.soak.transcript import Transcript
from streams.wire.codec import loads

if TYPE_CHECKING:
    from bench.soak.callers import Request

_SILENT_S = 45
"""A stream that sends nothing for so long, not even a ping, counts as cut."""
_GIVE_UP_S = 90
_FIRST_PAUSE_S = 0.3
_LONGEST_PAUSE_S = 2.0
_DETAIL_CHARACTERS = 300
_numbers = count(1)


def open_http() -> ClientSession:
    """A session that opens a connection for each request, so that each may meet any process of the server."""
    connector = TCPConnector(limit=0, force_close=True)
    timeout = ClientTimeout(total=None, sock_connect=10, sock_read=_SILENT_S)
    return ClientSession(connector=connector, timeout=timeout, trust_env=False)


class UserClient:
    """The requests of one user. Every answer that is no event stream is noted."""

    def __init__(self, http: ClientSession, url: str, headers: dict[str, str], notes: Docs) -> None:
        self._http = http
        self._url = url
        self._headers = headers
        self._notes = notes

    @staticmethod
    def new_request_id() -> str:
        """An id by which a request is found in the server's log."""
        return f"soak-{next(_numbers)}"

    async def begin(self, request: "Request", request_id: str) -> ClientResponse | None:
        """Ask for a stream until it begins; nothing where it is refused for too long."""
        return await self._until_answered("begin", "POST", request.path, request_id=request_id, request=request)

    async def cut_short(self, request: "Request", request_id: str, *, cut_after_s: float | None) -> str:
        """Ask for a stream and lose the connection, after so long or once its first bytes are there.

        The id of the stream, where that much was seen of it.
        """
        try:
            async with (
                asyncio.timeout(cut_after_s),
                self._ask("POST", request.path, request_id, request) as response,
            ):
                if response.status != 200:
                    await self._note("begin", self._notes.now_s(), request_id, response)
                    return ""
                await response.content.readany()
                return response.headers["X-Service-Stream-Id"]
        except TimeoutError:
            return ""
        except (ClientError, OSError) as error:
            self._note_lost("begin", self._notes.now_s(), request_id, error)
            return ""

    async def resume(self, stream_id: str, after: int) -> ClientResponse | None:
        """Read a stream on; nothing where that is refused for too long."""
        headers = {"Last-Event-ID": str(after)}
        return await self._until_answered(
            "resume", "GET", f"/bp/ai/stream/{stream_id}", headers=headers, stream_id=stream_id
        )

    async def cancel(self, stream_id: str) -> None:
        """Cancel a stream."""
        response = await self._until_answered("cancel", "DELETE", f"/bp/ai/stream/{stream_id}", stream_id=stream_id)
        if response is not None:
            response.release()

    async def read(self, response: ClientResponse, transcript: Transcript, *, leave_after_s: float | None) -> bool:
        """Read a response to its end, or leave it after so long; whether it was left."""
        try:
            async with asyncio.timeout(leave_after_s) as leaving, response:
                async for content in response.content.iter_any():
                    self._notes.events += transcript.feed(content)
        except (ClientError, OSError, TimeoutError):
            return leaving.expired()
        finally:
            response.close()
        return False

    def _ask(
        self, method: str, path: str, request_id: str, request: "Request | None" = None, **headers: str
    ) -> Any:
        told = {**self._headers, "X-Request-Id": request_id, **headers}
        data: Any = None
        if request is not None:
            data = request.pieces() if request.recording else request.body
            told["Content-Type"] = "application/json"
            if request.key:
                told["Idempotency-Key"] = request.key
        return self._http.request(method, self._url + path, headers=told, data=data)

    async def _until_answered(
        self,
        asked: Asked,
        method: str,
        path: str,
        *,
        request_id: str = "",
        request: "Request | None" = None,
        headers: dict[str, str] | None = None,
        stream_id: str = "",
    ) -> ClientResponse | None:
        give_up = time.monotonic() + _GIVE_UP_S
        pause_s = _FIRST_PAUSE_S
        while True:
            begin_s, id_ = self._notes.now_s(), request_id or self.new_request_id()
            try:
                response: ClientResponse = await self._ask(method, path, id_, request, **(headers or {}))
                if response.status == 200:
                    return response
                await self._note(asked, begin_s, id_, response, stream_id=stream_id)
            except (ClientError, OSError, TimeoutError) as error:
                self._note_lost(asked, begin_s, id_, error, stream_id=stream_id)
            if time.monotonic() > give_up:
                return None
            await asyncio.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)

    async def _note(
        self, asked: Asked, begin_s: float, request_id: str, response: ClientResponse, *, stream_id: str = ""
    ) -> None:
        async with response:
            body = await response.read()
        try:
            error_type = str(loads(body)["error"]["error_type"])
        except (ValueError, KeyError, TypeError):
            error_type = ""
        detail = body[:_DETAIL_CHARACTERS].decode(errors="replace")
        self._notes.answers.append(
            Answer(asked, begin_s, self._notes.now_s(), response.status, error_type, detail, request_id, stream_id)
        )

    def _note_lost(
        self, asked: Asked, begin_s: float, request_id: str, error: Exception, *, stream_id: str = ""
    ) -> None:
        now_s = self._notes.now_s()
        self._notes.answers.append(Answer(asked, begin_s, now_s, 0, "", repr(error), request_id, stream_id))
