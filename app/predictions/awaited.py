"""The synchronous prediction (§4.16). While it waits, it holds nothing but its connection."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

import structlog
from aiohttp import web
from pydantic import AfterValidator, Field

from actors.runtime.context import Owner
from actors.runtime.long_requests import LongRequest
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from app.http.rows.replies import Json
from app.predictions.endings import fail_prediction, finish_prediction, leave_prediction
from app.predictions.following import begin_prediction, was_not_created
from app.predictions.strategies import WITHIN_S, Host, check_size, host_of, strategy_of
from storage.assets import quotas
from storage.configs.kinds.predictions import Predictions
from storage.tasks import predictions
from storage.tasks.predictions import Prediction, output_with
from streams.wire.disclosure import told_cause
from streams.wire.errors import ConfigInvalid, InvalidParameter, Unavailable
from streams.wire.ids import new_id
from streams.wire.model import Model, not_blank
from vendors.errors import TimedOut, VendorError
from vendors.hosts.replicate import HostPrediction

log = structlog.get_logger()

WAIT_S = 300.0
_MARGIN_S = 30.0
"""This time after the longest wait, a job ends predictions that their process has not ended."""
_FIRST_POLL_S = 0.25
_LAST_POLL_S = 2.0
_SLOWER = 1.3
_FAILED_POLLS = 5
"""After this many consecutive failed polls, the host counts as unavailable."""
_LEAVING_S = 5


class PredictionRequest(Model):
    strategy: Annotated[str, AfterValidator(not_blank), Field(max_length=64)]
    """Name of a config of kind `predictions`."""
    version: Annotated[str, AfterValidator(not_blank), Field(max_length=255)]
    """The version of the model, as its host names it."""
    input: dict[str, Any] = Field(default_factory=dict)
    """The parameters of the model, which are passed on unchanged. At most 256 KiB of JSON."""


class PredictionReply(Model):
    """A prediction that has ended, with the units of its asset that are used."""

    id: str
    created: int
    """Unix seconds."""
    current_count: int
    """Units of the quota that are left; 0 if the strategy has none."""
    current_total_count: int
    """Total units of the quota: the free units of the day and the granted ones."""
    version: str
    input: dict[str, Any]
    output: list[str]
    """Texts, links to files, which are valid for 24 hours, and other values as JSON."""
    status: str
    """`succeeded`, `failed` or `canceled`. Only a prediction that has succeeded uses the quota."""
    error: str | None = None
    """Why it failed."""


async def predict(call: Call, body: Body[PredictionRequest]) -> Json[PredictionReply]:
    """Make a prediction within one request.

    The response is sent when the prediction has ended, which may take 5 minutes, so use a timeout of at least that.
    If the client disconnects earlier, the prediction is canceled. A prediction that fails at the host also gets a
    response, with the `status` `failed`, and does not use the quota.
    """
    strategy = strategy_of(call.services, call.app_id, body.strategy)
    if not strategy.allows_version(body.version):
        raise InvalidParameter(f"version is not one of strategy {body.strategy}")
    check_size("input", body.input)
    host = host_of(call.services, call.app_id, strategy.account)
    owner, per_user = Owner(call.app_id, call.caller.user), call.app_limits.predictions_per_user
    with call.services.supervisor.long_requests.admitted(owner, per_user=per_user) as waiting:
        prediction = await _add(call, body, strategy)
        await _make(call, prediction, waiting, host=host)
        return await _reply(call, body, strategy, prediction)


async def _add(call: Call, body: PredictionRequest, strategy: Predictions) -> Prediction:
    """Charge the quota and store the prediction, before the host is called."""
    services, app_id, uid, prediction_id = call.services, call.app_id, call.caller.user, new_id()
    now, key = services.clock.now(app_id), f"prediction:{prediction_id}"
    async with services.database.transaction() as conn:
        await quotas.use_units(conn, app_id, uid, key=key, quota=strategy.quota, now=now, sinks=services.sinks)
        return await predictions.add(
            conn,
            app_id,
            uid,
            prediction_id=prediction_id,
            strategy=body.strategy,
            account=strategy.account,
            model=None,
            body={"version": body.version, "input": body.input},
            awaited_s=WAIT_S + _MARGIN_S,
            now=now,
            asked_at=datetime.now(UTC),
        )


async def _make(call: Call, prediction: Prediction, waiting: LongRequest, *, host: Host) -> None:
    """Make the prediction at its host, and store its end. Cancel it there if nobody waits for it any more."""
    services = call.services
    try:
        async with asyncio.timeout(WAIT_S) as timeout:
            waiting.limited_by(timeout)
            created = await begin_prediction(services, prediction, host=host)
            found = await _ended(call.request, created, host=host)
            await finish_prediction(services, prediction, found, host=host)
    except (ConfigInvalid, InvalidParameter) as error:
        told = told_cause(error, in_full=services.settings.development)
        await fail_prediction(services, prediction, status="failed", error=told)
        raise
    except TimeoutError:
        if waiting.ended:
            await leave_prediction(services, prediction, status="canceled", error="")
            raise Unavailable("the server is draining") from None
        await leave_prediction(services, prediction, status="failed", error="timed out")
        raise TimedOut(host.platform, f"had no result within {WAIT_S:g} s", retryable=True) from None
    except VendorError as error:
        end = fail_prediction if was_not_created(error) else leave_prediction
        await end(services, prediction, status="failed", error=error.what)
        raise
    except BaseException:
        async with asyncio.timeout(_LEAVING_S):
            await leave_prediction(services, prediction, status="canceled", error="")
        raise


async def _ended(request: web.Request, prediction: HostPrediction, *, host: Host) -> HostPrediction:
    """Read a prediction until it has ended. Raises `ConnectionError` when the client has disconnected."""
    wait_s, failed, host_id = _FIRST_POLL_S, 0, prediction.id
    while not prediction.has_ended:
        await asyncio.sleep(wait_s)
        if request.transport is None or request.transport.is_closing():
            raise ConnectionResetError("the client has left")
        try:
            prediction = await host.call(None, lambda client: client.get(host_id), within_s=WITHIN_S)
            failed = 0
        except VendorError as error:
            failed += 1
            if failed == _FAILED_POLLS or not error.retryable:
                raise
        wait_s = min(wait_s * _SLOWER, _LAST_POLL_S)
    return prediction


async def _reply(
    call: Call, body: PredictionRequest, strategy: Predictions, prediction: Prediction
) -> Json[PredictionReply]:
    services, app_id, uid = call.services, call.app_id, call.caller.user
    async with services.database.connection() as conn:
        ended = await predictions.find(conn, app_id, uid, prediction_id=prediction.prediction_id) or prediction
        counts = await quotas.counts(conn, app_id, uid, quota=strategy.quota, now=services.clock.now(app_id))
    reply = {
        "id": ended.prediction_id,
        "created": int(ended.created_at.timestamp()),
        "current_count": counts.left,
        "current_total_count": counts.total,
        "version": body.version,
        "input": body.input,
        "output": output_with(ended, {key: services.objects.url(key) for key in ended.file_keys}),
        "status": ended.status,
    }
    return Json(reply | ({"error": ended.error} if ended.error else {}))
