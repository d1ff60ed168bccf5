"""`POST /v1/predictions`: a local language model behind the protocol of a model host, with results to ask for."""

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from pydantic import Field

from streams.tasks import background
from streams.wire.codec import dumps
from streams.wire.ids import new_id
from streams.wire.model import Model
from vendors.local.engines.engines import Engines
from vendors.local.engines.faults import Fault, model_not_found, read_body
from vendors.local.engines.protocols import ChatEngine, ChatOptions
from vendors.protocols import ChatMessage, TextDelta

OWNER = "parley"
_KEPT = 1000
_PAGE = 100


class _Input(Model):
    prompt: str = Field(min_length=1)
    system_prompt: str = ""
    max_tokens: int | None = Field(default=None, ge=1, le=1024)
    temperature: float | None = Field(default=None, ge=0, le=2)


class _Request(Model):
    version: str = ""
    input: _Input


class _AnyInput(Model):
    input: dict[str, Any]


@dataclass(slots=True)
class _Prediction:
    version: str
    input: dict[str, Any]
    id: str = field(default_factory=new_id)
    created: float = field(default_factory=time.time)
    status: str = "starting"
    texts: list[str] = field(default_factory=list)
    error: str | None = None
    task: background[None] | None = None

    def as_json(self) -> dict[str, Any]:
        ended = self.status == "succeeded"
        return {
            "id": self.id,
            "model": f"{OWNER}/{self.version}",
            "version": self.version,
            "input": self.input,
            "logs": "",
            "output": "".join(self.texts).strip() if ended else None,
            "error": self.error,
            "status": self.status,
            "created_at": datetime.fromtimestamp(self.created, UTC).isoformat(),
        }


class Predictions:
    """The predictions of this process. The last 1,000 are remembered."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._known: OrderedDict[str, _Prediction] = OrderedDict()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/predictions", self._create),
            web.post("/v1/models/{owner}/{name}/predictions", self._create),
            web.get("/v1/predictions", self._list),
            web.get("/v1/predictions/{id}", self._get),
            web.post("/v1/predictions/{id}/cancel", self._cancel),
        ]

    async def close(self, _: web.Application) -> None:
        for prediction in self._known.values():
            await _stop(prediction)

    async def _create(self, request: web.Request) -> web.Response:
        raw = await request.read()
        asked = read_body(_Request, raw)
        version = request.match_info.get("name") or asked.version.rpartition("/")[2]
        if request.match_info.get("owner", OWNER) != OWNER:
            raise model_not_found(version)
        engine = self._engines.chat(version)
        prediction = _Prediction(version, read_body(_AnyInput, raw).input)
        self._known[prediction.id] = prediction
        await self._forget_oldest()
        response = _json(prediction.as_json(), status=201)
        prediction.task = background(_run(engine, asked.input, prediction))
        prediction.task.start()
        return response

    async def _list(self, _: web.Request) -> web.Response:
        newest = [prediction.as_json() for prediction in reversed(self._known.values())][:_PAGE]
        return _json({"next": None, "previous": None, "results": newest})

    async def _get(self, request: web.Request) -> web.Response:
        return _json(self._found(request).as_json())

    async def _cancel(self, request: web.Request) -> web.Response:
        prediction = self._found(request)
        await _stop(prediction)
        return _json(prediction.as_json())

    def _found(self, request: web.Request) -> _Prediction:
        found = self._known.get(request.match_info["id"])
        if found is None:
            raise Fault(404, "The requested resource could not be found.")
        return found

    async def _forget_oldest(self) -> None:
        while len(self._known) > _KEPT:
            _, oldest = self._known.popitem(last=False)
            await _stop(oldest)


async def _stop(prediction: _Prediction) -> None:
    if prediction.status in {"starting", "processing"}:
        prediction.status = "canceled"
    if prediction.task is not None:
        await prediction.task.stop()
        prediction.task = None


async def _run(engine: ChatEngine, asked: _Input, prediction: _Prediction) -> None:
    prompt = [ChatMessage("user", asked.prompt)]
    messages = [ChatMessage("system", asked.system_prompt), *prompt] if asked.system_prompt else prompt
    options = ChatOptions(max_tokens=asked.max_tokens, temperature=asked.temperature)
    try:
        async with engine.reply(messages, options) as items:
            prediction.status = "processing"
            async for item in items:
                if isinstance(item, TextDelta):
                    prediction.texts.append(item.text)
    except Fault as fault:
        prediction.status, prediction.error = "failed", fault.message
    else:
        prediction.status = "succeeded"


def _json(value: object, *, status: int = 200) -> web.Response:
    return web.Response(body=dumps(value), status=status, content_type="application/json")
