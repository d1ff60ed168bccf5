"""S3 services that tests play at a socket, and stores that use them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

from storage.objects import ObjectStore, open_objects
from tests.running.object_stores import KEYRING

_ETAG = {"ETag": '"e"'}


@asynccontextmanager
async def store_at(endpoint_url: str, bucket: str = "bucket") -> AsyncIterator[ObjectStore]:
    async with open_objects(
        folder=Path("unused"),
        bucket=bucket,
        endpoint_url=endpoint_url,
        public_url="http://files.test",
        keyring=KEYRING,
    ) as objects:
        yield objects


@asynccontextmanager
async def store_of(answer: Callable[[web.Request], object]) -> AsyncIterator[ObjectStore]:
    """Open a store whose service answers all requests with `answer`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server, store_at(str(server.make_url("/"))) as objects:
        yield objects


def refusal(status: int, code: str) -> web.Response:
    return web.Response(status=status, text=f"<Error><Code>{code}</Code><Message>no</Message></Error>")


class FaultyService:
    """An S3 service that sends its responses in turn, and then repeats the last one."""

    def __init__(self, *answers: web.Response) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        await request.read()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[ObjectStore]:
        async with store_of(self.answer) as objects:
            yield objects


@dataclass
class PartService:
    """An S3 service that counts the bytes of uploads, which it does not keep, and sends files of zeros."""

    faults: dict[str, list[str]] = field(default_factory=dict)
    """What happens to requests instead, by step (`part 2`, `complete`, `abort`): `cut`, or the code of an error."""
    file_bytes: int = 0
    steps: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """The sizes of the parts, or of the whole object, that were stored."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        step = self._step(request)
        self.steps.append(step)
        size_bytes = 0
        async for piece in request.content.iter_any():
            size_bytes += len(piece)
        if self.faults.get(step):
            return self._fail(request, self.faults[step].pop(0))
        match step.split()[0]:
            case "create":
                name = "InitiateMultipartUploadResult"
                return web.Response(text=f"<{name}><UploadId>u</UploadId></{name}>")
            case "put" | "part":
                self.sizes.append(size_bytes)
                return web.Response(headers=_ETAG)
            case "read":
                return await self._send(request)
            case _:
                name = "CompleteMultipartUploadResult"
                return web.Response(text=f"<{name}><ETag>e</ETag></{name}>")

    def _step(self, request: web.Request) -> str:
        if "uploads" in request.query:
            return "create"
        if "partNumber" in request.query:
            return f"part {request.query['partNumber']}"
        return {"POST": "complete", "DELETE": "abort", "PUT": "put", "GET": "read"}[request.method]

    def _fail(self, request: web.Request, fault: str) -> web.Response:
        if fault == "cut":
            assert request.transport is not None
            request.transport.abort()
        return refusal(200 if fault == "LateError" else 500, "InternalError")

    async def _send(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=_ETAG)
        response.content_length = self.file_bytes
        await response.prepare(request)
        piece = bytes(1024 * 1024)
        for _ in range(self.file_bytes // len(piece)):
            await response.write(piece)
        return response

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[ObjectStore]:
        async with store_of(self.answer) as objects:
            yield objects
