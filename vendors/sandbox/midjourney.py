"""A gateway to Midjourney under `/midjourney`, and the images that it makes.

The prompt of a task says what becomes of it: see `_Wanted`.
"""

import re
import struct
import zlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import web
from pydantic import Field

from streams.wire.codec import dumps, loads, now_ms
from streams.wire.ids import sha256_hex
from streams.wire.model import Model
from vendors.sandbox.calls import Call, Dialect, Refusal
from vendors.sandbox.deliveries import Delivery, DeliveryFaults, FaultSource, Signed
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.sandbox import Sandbox

_KEPT = 10_000
_STATUSES = {
    Fault.UNAUTHORIZED: 401,
    Fault.OUT_OF_QUOTA: 402,
    Fault.RATE_LIMITED: 429,
    Fault.SERVER_ERROR: 500,
    Fault.UNAVAILABLE: 503,
}
_REQUIRED = {
    "imagine": ["prompt"],
    "reroll": ["origin_task_id"],
    "upscale": ["origin_task_id", "index"],
    "variation": ["origin_task_id", "index"],
    "inpaint": ["origin_task_id", "mask"],
    "outpaint": ["origin_task_id", "zoom_ratio"],
    "pan": ["origin_task_id", "direction"],
    "describe": ["image_url"],
    "blend": ["image_urls"],
    "seed": ["task_id"],
}
_GRID = ["reroll", *(f"{name}{index}" for name in ("upscale", "variation") for index in range(1, 5))]
_OPTION = re.compile(r"\[(\w+)=([^\]]*)\]")
_SIDE = 16


class _Wanted(Model):
    """The options in a prompt, such as `a cat [polls=2] [fail=no]`."""

    polls: int = Field(default=0, ge=0, strict=False)
    """How many times the task is read before it has ended."""
    refuse: str = ""
    """The message with which the task is refused, in a response with status 200."""
    fail: str = ""
    """The message with which the task fails."""
    file: str = ""
    """What its image is: `text`, `large`, `cut`, `missing`, or the URL of another one."""
    form: str = ""
    """`wrapped`: responses have the form of newer gateways. `nulls`, `garbled`: what a task does not need is null,
    or has another type."""
    webhook: str = ""
    """Whether and how its webhook is called: `on`, or one of `DeliveryFault`."""


@dataclass(slots=True)
class _Task:
    owner: str
    """The key of the account."""
    type: str
    body: dict[str, Any]
    wanted: _Wanted
    url: str
    """The address of the sandbox."""
    id: str = field(default_factory=lambda: str(uuid4()))
    created: int = field(default_factory=lambda: now_ms() // 1000)
    reads: int = 0

    @property
    def status(self) -> str:
        if self.reads <= self.wanted.polls:
            return "processing" if self.reads else "pending"
        return "failed" if self.wanted.fail else "finished"

    def image_url(self) -> str:
        if self.type in {"describe", "seed"} or self.status != "finished":
            return ""
        return self.wanted.file if "://" in self.wanted.file else f"{self.url}/midjourney/images/{self.id}.png"

    def as_json(self) -> dict[str, Any]:
        status, url = self.status, self.image_url()
        done = status in {"finished", "failed"}
        return {
            "task_id": self.id,
            "status": status,
            "process_time": 1 if done else 0,
            "retry_count": 0,
            "meta": {
                "account_id": "sandbox",
                "task_type": self.type,
                "origin_task_id": self.body.get("origin_task_id", ""),
                "bot_hash": "",
                "bot_id": 0,
                "model_version": "6.1",
                "process_mode": self.body.get("process_mode", "fast"),
                "quota_frozen": 0,
                "frozen_credit": 0,
                "created_at": self.created,
                "started_at": self.created if self.reads else 0,
                "ended_at": self.created + 1 if done else 0,
                "task_param": {
                    name: str(self.body.get(name, ""))
                    for name in ("prompt", "index", "zoom_ratio", "aspect_ratio", "direction")
                },
                "task_request": {"task_id": ""},
            },
            "task_result": {
                "discord_image_url": url,
                "image_url": url,
                "image_urls": None,
                "permanent_url": "",
                "task_progress": 100 if done else 100 * self.reads // (self.wanted.polls + 1),
                "image_id": sha256_hex(self.id.encode())[:32] if url else "",
                "seed": str(int(sha256_hex(self.id.encode())[:8], 16)) if self.type == "seed" and done else "",
                "result_message_id": "",
                "quota_used": 0,
                "credit": 0,
                "message": self.message() if done else "",
                "error_messages": [self.wanted.fail] if status == "failed" else None,
                "need_retry": False,
                "actions": _GRID if url else None,
            },
        }

    def message(self) -> str:
        if self.wanted.fail:
            return self.wanted.fail
        described = self.type == "describe"
        return "\n\n".join(f"{number}\ufe0f\u20e3 a picture" for number in range(1, 5)) if described else ""


def _key(request: web.Request) -> str:
    return request.headers.get("X-API-KEY", "")


def _refused(status: int, message: str) -> Refusal:
    return Refusal(status, {"code": status, "message": message, "data": None})


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    refused = _refused(_STATUSES[fault], f"The request was refused: {fault}.")
    if fault in {Fault.RATE_LIMITED, Fault.UNAVAILABLE}:
        refused.headers["Retry-After"] = f"{key_options.retry_after_s:g}"
    return refused


MIDJOURNEY = Dialect("midjourney", _key, _refuse)


class _Host:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._tasks: OrderedDict[str, _Task] = OrderedDict()

    async def create(self, call: Call) -> None:
        kind = call.request.match_info["type"]
        if kind not in _REQUIRED:
            raise _refused(404, "not found")
        body = _read(await call.request.read())
        for name in _REQUIRED[kind]:
            if not body.get(name):
                raise _refused(400, f"{name} is required")
        if not isinstance(body.get("index", ""), str):
            raise _refused(400, "index must be a string")
        if "--ar" in str(body.get("prompt", "")) and body.get("aspect_ratio"):
            raise _refused(400, "aspect_ratio and --ar are both given")
        wanted = _Wanted.model_validate(dict(_OPTION.findall(str(body.get("prompt") or ""))))
        parent = body.get("origin_task_id") or body.get("task_id")
        if parent is not None and parent not in self._tasks:
            wanted = _Wanted(refuse="derive from origin task: parent task is outdated")
        task = _Task(_key(call.request), kind, body, wanted, f"{call.request.scheme}://{call.request.host}")
        call.record(type=kind, **body)
        if wanted.refuse:
            answer = {"task_id": "", "status": "failed", "success": False, "message": wanted.refuse}
        else:
            self._keep(task)
            call.charge(images=1)
            call.record(task_id=task.id)
            answer = {"task_id": task.id, "status": "success", "message": "", "success": True}
        await call.answer(_in_form(wanted, answer), empty={})

    def _keep(self, task: _Task) -> None:
        self._tasks[task.id] = task
        if len(self._tasks) > _KEPT:
            self._tasks.popitem(last=False)
        if task.wanted.webhook and task.body.get("webhook_endpoint"):
            self._deliver(task)

    def _deliver(self, task: _Task) -> None:
        def sign() -> Signed:
            task.reads = task.wanted.polls + 1  # It has ended by then.
            headers = {"Content-Type": "application/json", "x-webhook-secret": task.body.get("webhook_secret", "")}
            return headers, dumps({"timestamp": task.created, "data": task.as_json()})

        source = FaultSource.of(task.wanted.webhook) or FaultSource(DeliveryFaults())
        self._sandbox.deliveries.add(Delivery(task.body["webhook_endpoint"], sign, task.id), source)

    async def fetch(self, call: Call) -> None:
        task = self._tasks.get(str(_read(await call.request.read()).get("task_id")))
        if task is None or task.owner != _key(call.request):
            raise _refused(400, "task not found")
        task.reads += 1
        call.record(task_id=task.id)
        await call.answer(_in_form(task.wanted, task.as_json()), empty={})

    async def image(self, request: web.Request) -> web.StreamResponse:
        task = self._tasks.get(request.match_info["id"])
        match task.wanted.file if task is not None else "missing":
            case "missing":
                return web.Response(status=404)
            case "text":
                return web.Response(body=b"This is no image, whatever its name says.")
            case "large":
                response = web.StreamResponse()
                await response.prepare(request)
                await response.write(_png(request.match_info["id"]))
                while True:  # Until the client has had enough.
                    await response.write(bytes(1 << 20))
            case "cut":
                response = web.StreamResponse()
                response.content_length = 1 << 20
                await response.prepare(request)
                await response.write(_png(request.match_info["id"]))
                assert request.transport is not None, "the client is connected"
                request.transport.close()
                return response
        return web.Response(body=_png(request.match_info["id"]), content_type="application/octet-stream")


def _png(name: str) -> bytes:
    """Return a small image whose colour depends on the name."""
    pixel = bytes.fromhex(sha256_hex(name.encode())[:6])
    rows = b"".join(b"\0" + pixel * _SIDE for _ in range(_SIDE))
    head = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def _in_form(wanted: _Wanted, answer: dict[str, Any]) -> dict[str, Any]:
    match wanted.form:
        case "wrapped":
            return {"code": 200, "data": answer, "message": "success"}
        case "nulls" | "garbled" as form:
            other: Any = None if form == "nulls" else [{}]
            result = dict.fromkeys(answer.get("task_result", ()), other)
            needed = {name: answer[name] for name in ("task_id", "status") if name in answer}
            kept = {name: value for name, value in answer.get("task_result", {}).items() if name == "image_url"}
            return dict.fromkeys(answer, other) | {"task_result": result | kept} | needed
    return answer


def _read(raw: bytes) -> dict[str, Any]:
    try:
        body = loads(raw)
    except ValueError:
        raise _refused(400, "the body is not valid JSON") from None
    if not isinstance(body, dict):
        raise _refused(400, "the body must be an object")
    return body


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    host = _Host(sandbox)
    return [
        sandbox.post("/midjourney/mj/v2/fetch", MIDJOURNEY, "fetch", host.fetch),
        sandbox.post("/midjourney/mj/v2/{type}", MIDJOURNEY, "create", host.create),
        web.get("/midjourney/images/{id}.png", host.image),
    ]
