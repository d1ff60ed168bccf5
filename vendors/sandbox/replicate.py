"""Replicate's API under `/replicate/v1`, and the files that its models make.

The input of a prediction says what becomes of it: see `_Input`.
"""

import time
from base64 import b64decode, b64encode
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from aiohttp import web
from pydantic import Field, ValidationError

from streams.wire.codec import dumps
from streams.wire.ids import sha256_hex
from streams.wire.long_integers import loads_exact
from streams.wire.model import Model, faults
from vendors.sandbox.calls import Call, Dialect, Refusal
from vendors.sandbox.deliveries import Delivery, DeliveryFault, DeliveryFaults, FaultSource, Signed
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.sandbox import Sandbox
from vendors.sinks.webhook import ID, SIGNATURE, TIMESTAMP, signature

OFFICIAL = "sandbox/official"
"""The only model with an endpoint of its own."""
UNKNOWN_VERSION = "0" * 64
WEBHOOK_KEY = b"the sandbox signs its webhooks with this"
_KEPT = 10_000
_PAGE = 100
_FINAL = frozenset({"succeeded", "failed", "canceled"})
_STATUSES = {
    Fault.UNAUTHORIZED: 401,
    Fault.OUT_OF_QUOTA: 402,
    Fault.RATE_LIMITED: 429,
    Fault.SERVER_ERROR: 500,
    Fault.UNAVAILABLE: 503,
}
FILES = {
    "png": b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    ),
    "txt": b"Neither an image nor a sound.",
}
"""The content of files by their extension."""


class _Input(Model):
    """The input of every model of the sandbox. The output is `output`, the URLs of `files`, or the prompt."""

    prompt: str = ""
    output: Any = None
    files: list[str] = Field(default_factory=list)
    """Names of files, such as `a.png`."""
    fail: str = ""
    """The error with which it fails."""
    after_ms: int = Field(default=0, ge=0)
    """When it ends."""
    aborts: bool = False
    """Whether it ends before it starts."""
    fields: dict[str, Any] = Field(default_factory=dict)
    """Fields of the prediction that are sent instead of its own."""
    webhook: str = ""
    """The fault of its webhook, one of `DeliveryFault`."""


class _Body(Model):
    input: dict[str, Any]
    version: str | None = None
    webhook: str | None = None
    webhook_events_filter: list[str] | None = None


@dataclass(slots=True)
class _Prediction:
    owner: str
    """The name of the account, which its key has."""
    model: str
    version: str
    body: _Body
    wanted: _Input
    url: str
    """The address of the sandbox."""
    id: str = field(default_factory=lambda: uuid4().hex[:26])
    created: float = field(default_factory=time.time)
    canceled: float | None = None

    @property
    def status(self) -> str:
        if self.canceled is not None:
            return "canceled"
        if time.time() < self.created + self.wanted.after_ms / 1000:
            return "processing"
        if self.wanted.aborts:
            return "aborted"
        return "failed" if self.wanted.fail else "succeeded"

    def output(self) -> Any:
        if self.wanted.files:
            return [f"{self.url}/replicate/files/{self.id}/{name}" for name in self.wanted.files]
        return self.wanted.prompt if self.wanted.output is None else self.wanted.output

    def as_json(self, *, status: str | None = None) -> dict[str, Any]:
        status = status or self.status
        get = f"{self.url}/replicate/v1/predictions/{self.id}"
        ended = _iso(time.time()) if status in _FINAL else None
        return {
            "id": self.id,
            "model": self.model,
            "version": self.version,
            "input": self.body.input,
            "logs": "",
            "output": self.output() if status == "succeeded" else None,
            "error": self.wanted.fail if status == "failed" else None,
            "status": status,
            "source": "api",
            "data_removed": False,
            "created_at": _iso(self.created),
            "started_at": None if status == "starting" else _iso(self.created),
            "completed_at": ended,
            "deadline": None,
            "metrics": {},
            "urls": {"get": get, "cancel": f"{get}/cancel", "web": get},
            **self.wanted.fields,
        }


def _refused(status: int, title: str, detail: str) -> Refusal:
    return Refusal(status, {"title": title, "detail": detail, "status": status})


def _key(request: web.Request) -> str:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    return key if scheme in {"Bearer", "Token"} else ""


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    refused = _refused(_STATUSES[fault], "Refused", f"The request was refused: {fault}.")
    if fault in {Fault.RATE_LIMITED, Fault.UNAVAILABLE}:
        refused.headers["Retry-After"] = f"{key_options.retry_after_s:g}"
    return refused


REPLICATE = Dialect("replicate", _key, _refuse)


class _Host:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._predictions: OrderedDict[str, _Prediction] = OrderedDict()
        self._models: dict[str, str] = {}
        """The models whose versions were asked for, by version."""

    async def create(self, call: Call) -> None:
        body = _read(call, await call.request.read())
        if not body.version:
            raise _refused(422, "Input validation failed", "- version is required\n")
        if body.version.rpartition(":")[2] == UNKNOWN_VERSION:
            raise _refused(422, "Invalid version or not permitted", "The specified version does not exist.")
        version = body.version.rpartition(":")[2]
        model = self._models.get(version, version if "/" in version else "sandbox/model")
        await self._begin(call, body, model=model, version="hidden" if "/" in version else version)

    async def create_by_model(self, call: Call) -> None:
        name = _model(call.request)
        body = _read(call, await call.request.read())
        if name != OFFICIAL:
            raise _refused(404, "", "The requested resource could not be found.")
        await self._begin(call, body, model=name, version="hidden")

    async def _begin(self, call: Call, body: _Body, *, model: str, version: str) -> None:
        try:
            wanted = _Input.model_validate(body.input)
        except ValidationError as error:
            path, problem = next(faults(error))
            raise _refused(422, "Input validation failed", f"- input.{path} {problem}\n") from None
        if not body.input:
            raise _refused(422, "Input validation failed", "- input.prompt is required\n")
        url = f"{call.request.scheme}://{call.request.host}"
        new = _Prediction(call.key_options.name, model, version, body, wanted, url)
        self._predictions[new.id] = new
        if len(self._predictions) > _KEPT:
            self._predictions.popitem(last=False)
        call.record(**body.model_dump(exclude_none=True), model=model)
        call.charge(predictions=1)
        if body.webhook:
            self._deliver(new, body.webhook)
        await call.answer(new.as_json(status="starting"), empty={}, status=201)

    def _deliver(self, prediction: _Prediction, url: str) -> None:
        delivery_id, chosen = f"msg_{uuid4().hex}", prediction.wanted.webhook
        fault = DeliveryFault(chosen) if chosen in set(DeliveryFault) else DeliveryFault.DELAYED
        delay_ms = prediction.wanted.after_ms + 20

        def sign() -> Signed:
            body, t = dumps(prediction.as_json()), int(time.time())
            signed = signature(WEBHOOK_KEY, delivery_id, body, t=t)
            headers = {ID: delivery_id, TIMESTAMP: str(t), SIGNATURE: f"v1,{'A' * 44} {signed}"}
            return {"Content-Type": "application/json", **headers}, body

        source = FaultSource(DeliveryFaults(fault=fault, delay_ms=delay_ms))
        self._sandbox.deliveries.add(Delivery(url, sign, prediction.id), source)

    async def get(self, call: Call) -> None:
        await call.answer(self._found(call).as_json(), empty={})

    async def cancel(self, call: Call) -> None:
        found = self._found(call)
        if found.status == "processing":
            found.canceled = time.time()
        call.record(canceled=found.id)
        await call.answer(found.as_json(), empty={})

    async def list(self, call: Call) -> None:
        after = call.request.query.get("created_after")
        since = datetime.fromisoformat(after).timestamp() if after else 0.0
        own = [prediction for prediction in self._predictions.values() if prediction.owner == call.key_options.name]
        newest = [prediction.as_json() for prediction in reversed(own) if prediction.created >= since][:_PAGE]
        await call.answer({"next": None, "previous": None, "results": newest}, empty={"results": []})

    async def get_model(self, call: Call) -> None:
        model = _model(call.request)
        owner, _, name = model.partition("/")
        if name == "missing":
            raise _refused(404, "", "The requested resource could not be found.")
        version = sha256_hex(model.encode())
        self._models[version] = model
        await call.answer({"owner": owner, "name": name, "latest_version": {"id": version}}, empty={})

    def _found(self, call: Call) -> _Prediction:
        found = self._predictions.get(call.request.match_info["id"])
        if found is None or found.owner != call.key_options.name:
            raise _refused(404, "", "The requested resource could not be found.")
        return found


async def _webhook_key(call: Call) -> None:
    await call.answer({"key": f"whsec_{b64encode(WEBHOOK_KEY).decode()}"}, empty={})


async def _file(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    body = FILES.get(name.rpartition(".")[2])
    return web.Response(status=404) if body is None else web.Response(body=body)


def _model(request: web.Request) -> str:
    return f"{request.match_info['owner']}/{request.match_info['name']}"


def _read(call: Call, raw: bytes) -> _Body:
    try:
        return _Body.model_validate(loads_exact(raw))
    except ValidationError as error:
        path, problem = next(faults(error))
        raise _refused(422, "Input validation failed", f"- {path} {problem}\n") from None
    except ValueError:
        raise _refused(400, "Bad request", "The body is not valid JSON.") from None


def _iso(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    host = _Host(sandbox)
    models = "/replicate/v1/models/{owner}/{name}"
    return [
        sandbox.post("/replicate/v1/predictions", REPLICATE, "predictions", host.create),
        sandbox.get("/replicate/v1/predictions", REPLICATE, "list", host.list),
        sandbox.get("/replicate/v1/predictions/{id}", REPLICATE, "get", host.get),
        sandbox.post("/replicate/v1/predictions/{id}/cancel", REPLICATE, "cancel", host.cancel),
        sandbox.post(f"{models}/predictions", REPLICATE, "predictions", host.create_by_model),
        sandbox.get(models, REPLICATE, "models", host.get_model),
        sandbox.get("/replicate/v1/webhooks/default/secret", REPLICATE, "secret", _webhook_key),
        web.get("/replicate/files/{id}/{name}", _file),
    ]
