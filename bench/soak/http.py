"""The requests of one user, repeated while the server's processes are replaced or its stores are unavailable."""

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING, Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector

from bench.soak.observations import Answer, Observations, Operation
from bench.soak.transcript import Transcript
from streams.wire.codec import loads

if TYPE_CHECKING:
    from bench.soak.callers import Request

_SILENT_S = 45
"""A stream that sends nothing for this long, not even a ping, counts as broken off."""
_GIVE_UP_S = 90
_FIRST_PAUSE_S = 0.3
_MAX_PAUSE_S = 2.0
_DETAIL_CHARACTERS = 300
_numbers = count(1)


def open_http() -> ClientSession:
    """Open a session that uses a new connection per request, so that any server process may receive it."""
    connector = TCPConnector(limit=0, force_close=True)
    timeout = ClientTimeout(total=None, sock_connect=10, sock_read=_SILENT_S)
    return ClientSession(connector=connector, timeout=timeout, trust_env=False)


class UserClient:
    """The requests of one user. It records every response that is not an event stream."""

    def __init__(self, http: ClientSession, url: str, headers: dict[str, str], observations: Observations) -> None:
        self._http = http
        self._url = url
        self._headers = headers
        self._observations = observations

    @staticmethod
    def new_request_id() -> str:
        """Return an id that identifies a request in the server's log."""
        return f"soak-{next(_numbers)}"

    async def begin(self, request: "Request", request_id: str) -> ClientResponse | None:
        """Begin a stream, repeating the request if needed. Return None if it is refused for 90 s."""
        return await self._until_answered("begin", "POST", request.path, request_id=request_id, request=request)

    async def cut_short(self, request: "Request", request_id: str, *, cut_after_s: float | None) -> str:
        """Begin a stream and drop the connection after `cut_after_s`, or when the first bytes arrive if it is None.

        Return the id of the stream, or an empty string if it is unknown.
        """
        try:
            async with (
                asyncio.timeout(cut_after_s),
                self._send("POST", request.path, request_id, request) as response,
            ):
                if response.status != 200:
                    await self._record_response("begin", self._observations.now_s(), request_id, response)
                    return ""
                await response.content.readany()
                return response.headers["X-Service-Stream-Id"]
        except TimeoutError:
            return ""
        except (ClientError, OSError) as error:
            self._record_failure("begin", self._observations.now_s(), request_id, error)
            return ""

    async def resume(self, stream_id: str, after: int) -> ClientResponse | None:
        """Resume a stream after the event `after`. Return None if that is refused for 90 s."""
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
        """Read a response to its end, or leave it after `leave_after_s`. Return whether it was left."""
        try:
            async with asyncio.timeout(leave_after_s) as leaving, response:
                async for content in response.content.iter_any():
                    self._observations.events += transcript.feed(content)
        except (ClientError, OSError, TimeoutError):
            return leaving.expired()
        finally:
            response.close()
        return False

    def _send(
        self, method: str, path: str, request_id: str, request: "Request | None" = None, **headers: str
    ) -> Any:
        all_headers = {**self._headers, "X-Request-Id": request_id, **headers}
        data: Any = None
        if request is not None:
            data = request.pieces() if request.recording else request.body
            all_headers["Content-Type"] = "application/json"
            if request.key:
                all_headers["Idempotency-Key"] = request.key
        return self._http.request(method, self._url + path, headers=all_headers, data=data)

    async def _until_answered(
        self,
        operation: Operation,
        method: str,
        path: str,
        *,
        request_id: str = "",
        request: "Request | None" = None,
        headers: dict[str, str] | None = None,
        stream_id: str = "",
    ) -> ClientResponse | None:
        deadline = time.monotonic() + _GIVE_UP_S
        pause_s = _FIRST_PAUSE_S
        while True:
            begin_s, id_ = self._observations.now_s(), request_id or self.new_request_id()
            try:
                response: ClientResponse = await self._send(method, path, id_, request, **(headers or {}))
                if response.status == 200:
                    return response
                await self._record_response(operation, begin_s, id_, response, stream_id=stream_id)
            except (ClientError, OSError, TimeoutError) as error:
                self._record_failure(operation, begin_s, id_, error, stream_id=stream_id)
            if time.monotonic() > deadline:
                return None
            await asyncio.sleep(pause_s)
            pause_s = min(_MAX_PAUSE_S, pause_s * 2)

    async def _record_response(
        self,
        operation: Operation,
        begin_s: float,
        request_id: str,
        response: ClientResponse,
        *,
        stream_id: str = "",
    ) -> None:
        async with response:
            body = await response.read()
        try:
            error_type = str(loads(body)["error"]["error_type"])
        except (ValueError, KeyError, TypeError):
            error_type = ""
        detail = body[:_DETAIL_CHARACTERS].decode(errors="replace")
        self._observations.answers.append(
            Answer(
                operation,
                begin_s,
                self._observations.now_s(),
                response.status,
                error_type,
                detail,
                request_id,
                stream_id,
                response.headers.get("Retry-After", ""),
            )
        )

    def _record_failure(
        self, operation: Operation, begin_s: float, request_id: str, error: Exception, *, stream_id: str = ""
    ) -> None:
        now_s = self._observations.now_s()
        self._observations.answers.append(
            Answer(operation, begin_s, now_s, 0, "", repr(error), request_id, stream_id)
        )
