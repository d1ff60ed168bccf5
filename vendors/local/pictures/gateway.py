"""The HTTP endpoints of the drawing engine, with the protocol of Midjourney's gateways."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from streams.wire.codec import dumps, loads_request
from streams.wire.errors import InvalidParameter
from vendors.local.pictures import pictures
from vendors.local.pictures.pictures import NoImage
from vendors.local.pictures.tasks import Painter, Refused, Task

_KEPT = 1000
_FILE_BYTES = 32 * 1024 * 1024
_READ_S = 10
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "imagine": ("prompt",),
    "reroll": ("origin_task_id",),
    "upscale": ("origin_task_id", "index"),
    "variation": ("origin_task_id", "index"),
    "inpaint": ("origin_task_id", "mask", "prompt"),
    "outpaint": ("origin_task_id", "zoom_ratio"),
    "pan": ("origin_task_id", "direction"),
    "describe": ("image_url",),
    "blend": ("image_urls",),
    "seed": ("task_id",),
}


class PictureGateway:
    """Keeps the last 1,000 tasks. A picture is drawn when it is downloaded, always alike."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._painter = Painter(_read)
        self._drawing = asyncio.Semaphore(1)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/mj/v2/fetch", self._fetch),
            web.post("/v1/mj/v2/{type}", self._create),
            web.get("/v1/mj/images/{id}.png", self._image),
        ]

    async def _create(self, request: web.Request) -> web.Response:
        kind, body = request.match_info["type"], await _body(request)
        missing = [name for name in _REQUIRED.get(kind, ()) if not body.get(name)]
        if kind not in _REQUIRED or missing:
            return _refused(f"{missing[0]} is required" if missing else f"{kind} is not a type of task", status=400)
        origin = self._tasks.get(str(body.get("origin_task_id") or body.get("task_id") or ""))
        try:
            task = await self._painter.paint(kind, body, origin)
        except (Refused, NoImage) as refused:
            return _refused(str(refused))
        except (ClientError, TimeoutError):
            return _refused("an image could not be read from its URL")
        self._tasks[task.id] = task
        if len(self._tasks) > _KEPT:
            self._tasks.popitem(last=False)
        return _json({"task_id": task.id, "status": "success", "message": "", "success": True})

    async def _fetch(self, request: web.Request) -> web.Response:
        task = self._tasks.get(str((await _body(request)).get("task_id")))
        if task is None:
            return _refused("task not found", status=400)
        return _json(task.as_json(f"{request.scheme}://{request.host}/v1/mj/images/{task.id}.png"))

    async def _image(self, request: web.Request) -> web.Response:
        task = self._tasks.get(request.match_info["id"])
        if task is None or task.picture is None:
            raise web.HTTPNotFound
        async with self._drawing:
            content = await asyncio.to_thread(pictures.png, task.picture, task.width)
        return web.Response(body=content, content_type="image/png")


async def _read(url: str) -> bytes:
    """Return an image of the user, which the server has named."""
    timeout = ClientTimeout(total=_READ_S)
    async with (
        ClientSession(timeout=timeout, trust_env=False) as http,
        http.get(url, allow_redirects=False) as answer,
    ):
        answer.raise_for_status()
        content = bytearray()
        async for piece in answer.content.iter_any():
            content += piece
            if len(content) > _FILE_BYTES:
                raise Refused("an image is too large")
        return bytes(content)


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = loads_request(await request.read())
    except InvalidParameter:
        body = None
    return body if isinstance(body, dict) else {}


def _refused(message: str, *, status: int = 200) -> web.Response:
    return _json({"task_id": "", "status": "failed", "message": message, "success": False}, status=status)


def _json(value: object, *, status: int = 200) -> web.Response:
    return web.Response(body=dumps(value), status=status, content_type="application/json")
