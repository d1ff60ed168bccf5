"""The jobs that begin a prediction at its host, poll it until it has ended, and cancel it if nobody needs it.

A host has no idempotency keys. So the time of a call is stored before the call. If its response is lost, even by
the death of the process, the job searches the host's list for the prediction before it calls again.
"""

from datetime import UTC, datetime, timedelta

import structlog

from app.predictions.endings import fail_prediction, finish_prediction, host_of_prediction, leave_prediction
from app.predictions.strategies import WITHIN_S, Host, asked_of, host_of, webhook_url
from app.services import Services
from storage.tasks import predictions
from storage.tasks.predictions import CancelPrediction, FollowPrediction, Prediction
from streams.wire.disclosure import told_cause
from streams.wire.errors import ConfigInvalid, InvalidParameter
from streams.wire.long_integers import loads_exact
from vendors.errors import Refused, VendorError
from vendors.hosts.replicate import HostPrediction, NewPrediction

log = structlog.get_logger()

LISTED_WITHIN = timedelta(seconds=10)
"""After this time, a prediction that the host does not list does not exist there."""
_LASTS = timedelta(hours=1)
"""A prediction that has not ended by then is canceled. Hosts delete inputs and outputs after an hour too."""
_CLOCKS_DIFFER = timedelta(seconds=60)
_FIRST_POLL_S = 1.0
_LAST_POLL_S = 15.0
_TOO_LONG = "the host had no result within an hour"


async def follow_prediction(services: Services, job: FollowPrediction) -> None:
    """Take the next step of a prediction, and store the job again until it has ended."""
    async with services.database.connection() as conn:
        found = await predictions.find(conn, job.app_id, job.uid, prediction_id=job.prediction_id)
    if found is None or found.ended_at is not None:
        return
    if found.is_awaited:  # Nobody waits any more: the process that had the connection has ended.
        await leave_prediction(services, found, status="canceled", error="")
        return
    age = services.clock.now(found.app_id) - found.created_at
    if age > _LASTS:
        await leave_prediction(services, found, status="failed", error=_TOO_LONG)
        return
    try:
        await _step(services, found)
    except (ConfigInvalid, InvalidParameter) as error:
        if found.host_id is None:
            log.warning(
                "prediction.refused", app_id=found.app_id, prediction_id=found.prediction_id, error=str(error)
            )
            told = told_cause(error, in_full=services.settings.development)
            await fail_prediction(services, found, status="failed", error=told)
            return
        log.info("prediction.postponed", app_id=found.app_id, prediction_id=found.prediction_id, cause=str(error))
    except VendorError as error:  # The step is repeated, until the prediction is too old.
        log.info("prediction.postponed", app_id=found.app_id, prediction_id=found.prediction_id, cause=str(error))
    async with services.database.transaction() as conn:
        left = await predictions.find(conn, job.app_id, job.uid, prediction_id=job.prediction_id)
        if left is not None and left.ended_at is None:
            wait_s = min(max(age.total_seconds() / 4, _FIRST_POLL_S), _LAST_POLL_S)
            await predictions.follow_soon(conn, left, in_s=wait_s)


async def _step(services: Services, prediction: Prediction) -> None:
    host = host_of_prediction(services, prediction)
    host_id = prediction.host_id
    if host_id is not None:
        await _store_state(services, prediction, await _read(host, host_id), host=host)
    elif prediction.asked_at is None:
        await begin_prediction(services, prediction, host=host)
    elif (found := await _lost(services, host, prediction)) is not None:
        async with services.database.connection() as conn:
            await predictions.claim(conn, prediction.prediction_id, host_id=found.id)
    elif datetime.now(UTC) - prediction.asked_at > LISTED_WITHIN:
        async with services.database.connection() as conn:
            await predictions.set_asked(conn, prediction.prediction_id, asked_at=None)


async def begin_prediction(services: Services, prediction: Prediction, *, host: Host) -> HostPrediction:
    """Begin a prediction at the host. The host calls our webhook unless a client awaits the result."""
    webhook = None if prediction.is_awaited else webhook_url(services, host, prediction.app_id)
    if not prediction.is_awaited:
        async with services.database.connection() as conn:
            await predictions.set_asked(conn, prediction.prediction_id, asked_at=datetime.now(UTC))
    try:
        created = await host.call(
            None, lambda client: client.create(asked_of(prediction), webhook=webhook), within_s=WITHIN_S
        )
    except VendorError as error:
        if was_not_created(error) and not prediction.is_awaited:
            async with services.database.connection() as conn:
                await predictions.set_asked(conn, prediction.prediction_id, asked_at=None)
        raise
    async with services.database.connection() as conn:
        await predictions.claim(conn, prediction.prediction_id, host_id=created.id)
    return created


def was_not_created(error: VendorError) -> bool:
    """Return whether the host has certainly not begun the prediction, because it was too busy or was not called."""
    return isinstance(error, Refused) and error.vendor_status in {None, 429}


async def _read(host: Host, host_id: str) -> HostPrediction:
    try:
        return await host.call(None, lambda client: client.get(host_id), within_s=WITHIN_S)
    except Refused as refused:
        if refused.vendor_status != 404:
            raise
        return HostPrediction(id=host_id, status="failed", error="the host does not know the prediction any more")


async def _store_state(services: Services, prediction: Prediction, found: HostPrediction, *, host: Host) -> None:
    if found.has_ended:
        await finish_prediction(services, prediction, found, host=host)
    elif found.status == "processing":
        async with services.database.connection() as conn:
            await predictions.set_processing(conn, prediction.prediction_id)


async def _lost(services: Services, host: Host, prediction: Prediction) -> HostPrediction | None:
    """Return the prediction that a call whose response was lost has begun at the host, if any."""
    assert prediction.asked_at is not None, "it was asked for"
    listed = await _listed(host, asked_of(prediction), since=prediction.asked_at)
    async with services.database.connection() as conn:
        known = await predictions.known_ids(conn, host_ids=[prediction.id for prediction in listed])
    return next((prediction for prediction in listed if prediction.id not in known), None)


async def _listed(host: Host, asked: NewPrediction, *, since: datetime) -> list[HostPrediction]:
    """Return the host's predictions with the same input since a time, oldest first."""
    since -= _CLOCKS_DIFFER
    listed = await host.call(None, lambda client: client.created_since(since), within_s=WITHIN_S)
    return [prediction for prediction in reversed(listed) if asked.is_that_of(prediction)]


async def cancel_prediction(services: Services, job: CancelPrediction) -> None:
    """Cancel a prediction at its host, if the host has begun it."""
    host, host_id = host_of(services, job.app_id, job.account), job.host_id
    if host_id is None:
        asked = NewPrediction(loads_exact(job.body.encode()), job.model)
        listed = await _listed(host, asked, since=datetime.fromtimestamp(job.asked_at, UTC))
        async with services.database.connection() as conn:
            known = await predictions.known_ids(conn, host_ids=[prediction.id for prediction in listed])
        running = [
            prediction.id for prediction in listed if prediction.id not in known and not prediction.has_ended
        ]
        if len(running) != 1:  # If there are several, another request may wait for any of them.
            return
        host_id = running[0]
    cancelled = host_id
    try:
        await host.call(None, lambda client: client.cancel(cancelled), within_s=WITHIN_S)
    except Refused as refused:
        if refused.vendor_status != 404:
            raise
