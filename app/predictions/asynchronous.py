"""Asynchronous predictions (§4.16): a job makes them, and clients poll for the result."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from app.assets.view import AssetView, asset_views
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path
from app.http.rows.replies import Json
from app.http.rows.transactions import Transaction
from app.predictions.strategies import check_size, host_of, strategy_of
from storage.assets import assets, quotas
from storage.configs.kinds.predictions import Predictions
from storage.tasks import predictions
from storage.tasks.predictions import PREDICTION, output_with
from streams.wire.errors import InvalidParameter
from streams.wire.model import Matches, Model, not_blank

_PART = r"[A-Za-z0-9_-][A-Za-z0-9._-]*"
_DROPPED = frozenset({"webhook", "webhook_events_filter"})
_VERSION_CHARACTERS = 255
_ModelName = Annotated[str, Matches(rf"^{_PART}/{_PART}$", "must be <owner>/<name>"), Field(max_length=255)]


class AsyncRequest(Model):
    strategy: Annotated[str, AfterValidator(not_blank), Field(max_length=64)]
    """Name of a config of kind `predictions`."""
    module: Literal["model", "prediction"]
    """`prediction`: `data` names the version. `model`: `model` is called."""
    model: _ModelName | None = None
    """The model, as `owner/name`. Required if `module` is `model`."""
    data: dict[str, Any]
    """The request to the model host: `input`, and `version` if `module` is `prediction`. At most 256 KiB of JSON. A
    `webhook` is removed."""


class AsyncReply(Model):
    """The id of the prediction that has begun, with the units of its asset that are used."""

    asset: list[AssetView]
    """The user's assets."""
    current_count: int
    """Units of the quota that are left; 0 if the strategy has none."""
    current_total_count: int
    """Total units of the quota: the free units of the day and the granted ones."""
    id: str
    """The id with which to read the result."""


class PredictionPath(Model):
    prediction_id: Annotated[str, AfterValidator(PREDICTION.validate)]
    """A prediction of the user."""


class PredictionState(Model):
    """The status of a prediction, and its output or error once it has ended."""

    id: str
    status: Literal["starting", "processing", "succeeded", "failed", "canceled"]
    output: list[str]
    """Texts, links to files, which are valid for 24 hours, and other values as JSON. Empty until it succeeds."""
    error: str | None = None
    """Why it failed."""


async def predict_later(call: Call, transaction: Transaction, body: Body[AsyncRequest]) -> AsyncReply:
    """Begin a prediction.

    Read its result with the `id` of the response. The quota is charged now, and given back if the prediction fails.
    """
    services, app_id, uid = call.services, call.app_id, call.caller.user
    strategy = strategy_of(services, app_id, body.strategy)
    model, data = _checked(body, strategy)
    host_of(services, app_id, strategy.account)
    now, prediction_id = services.clock.now(app_id), transaction.operation_id
    async with transaction.begin() as conn:
        key = f"prediction:{prediction_id}"
        await quotas.use_units(conn, app_id, uid, key=key, quota=strategy.quota, now=now, sinks=services.sinks)
        await predictions.add(
            conn,
            app_id,
            uid,
            prediction_id=prediction_id,
            strategy=body.strategy,
            account=strategy.account,
            model=model,
            body=data,
            awaited_s=None,
            now=now,
            asked_at=None,
        )
        counts = await quotas.counts(conn, app_id, uid, quota=strategy.quota, now=now)
        owned = asset_views(await assets.of_user(conn, app_id, uid), now=now)
        return transaction.answer(
            AsyncReply(asset=owned, current_count=counts.left, current_total_count=counts.total, id=prediction_id)
        )


def _checked(body: AsyncRequest, strategy: Predictions) -> tuple[str | None, dict[str, Any]]:
    """Return the model, if its own endpoint is called, and the request to it."""
    check_size("data", body.data)
    data = {name: value for name, value in body.data.items() if name not in _DROPPED}
    if not isinstance(data.setdefault("input", {}), dict):
        raise InvalidParameter("data.input must be an object")
    if body.module == "model":
        if body.model is None:
            raise InvalidParameter("model is required")
        if not strategy.allows_model(body.model):
            raise InvalidParameter(f"model is not one of strategy {body.strategy}")
        return body.model, {name: value for name, value in data.items() if name != "version"}
    version = data.get("version")
    if not isinstance(version, str) or not 0 < len(version) <= _VERSION_CHARACTERS:
        raise InvalidParameter(f"data.version must be a string of 1 to {_VERSION_CHARACTERS} characters")
    if not strategy.allows_version(version):
        raise InvalidParameter(f"data.version is not one of strategy {body.strategy}")
    return None, data


async def read_prediction(call: Call, path: Path[PredictionPath]) -> Json[PredictionState]:
    """Get the result of a prediction."""
    services, app_id, uid = call.services, call.app_id, call.caller.user
    async with services.database.connection() as conn:
        found = await predictions.find(conn, app_id, uid, prediction_id=path.prediction_id)
    prediction = PREDICTION.require(path.prediction_id, found)
    links = {key: services.objects.url(key) for key in prediction.file_keys}
    state = {
        "id": prediction.prediction_id,
        "status": prediction.status,
        "output": output_with(prediction, links),
    }
    return Json(state | ({"error": prediction.error} if prediction.error else {}))
