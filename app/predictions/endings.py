"""Ends predictions. The transaction that ends a prediction without a result gives the quota back."""

from functools import partial

from app.predictions.copied_files import CopiedFiles
from app.predictions.strategies import Host, host_of
from app.services import Services
from storage.accounts import users
from storage.assets import quotas
from storage.jobs.jobs import due_in, enqueue
from storage.postgres.database import Connection
from storage.tasks import predictions
from storage.tasks.predictions import CancelPrediction, Prediction, Status, replace_texts
from vendors.hosts.replicate import FILE_HOSTS, HostPrediction

_MOST_FILES = 100
_ARRIVES_S = 2
_GONE = "the host has deleted the output"


async def finish_prediction(
    services: Services, prediction: Prediction, found: HostPrediction, *, host: Host
) -> None:
    """Store the outcome of a prediction that has ended at its host. Files of the output are copied first."""
    if found.status == "succeeded" and not found.data_removed:
        await _succeed(services, prediction, found, host=host)
    elif found.status == "succeeded":
        await fail_prediction(services, prediction, status="failed", error=_GONE)
    else:
        status: Status = "canceled" if found.status == "canceled" else "failed"
        await fail_prediction(services, prediction, status=status, error=found.error)


async def _succeed(services: Services, prediction: Prediction, found: HostPrediction, *, host: Host) -> None:
    now = partial(services.clock.now, prediction.app_id)
    owner = prediction.app_id, prediction.uid
    files = CopiedFiles(services.database, services.objects, host, owner, now)
    await files.copy_all(found.output, hosts=FILE_HOSTS, most=_MOST_FILES)
    output, keys = replace_texts(found.output, files.keys), list(files.keys.values())
    async with services.database.transaction() as conn:
        await predictions.end_prediction(
            conn, prediction, status="succeeded", output=output, file_keys=keys, now=now()
        )


async def fail_prediction(services: Services, prediction: Prediction, *, status: Status, error: str) -> None:
    """End a prediction without a result, unless it has ended already."""
    async with services.database.transaction() as conn:
        await _end_prediction(services, conn, prediction, status=status, error=error)


async def leave_prediction(services: Services, prediction: Prediction, *, status: Status, error: str) -> None:
    """End a prediction that may still run at its host. A job cancels it there."""
    async with services.database.transaction() as conn:
        if not await _end_prediction(services, conn, prediction, status=status, error=error):
            return
        ended = await predictions.find(
            conn, prediction.app_id, prediction.uid, prediction_id=prediction.prediction_id
        )
        if ended is not None and ended.asked_at is not None:
            job = CancelPrediction(
                app_id=ended.app_id,
                uid=ended.uid,
                account=ended.account,
                host_id=ended.host_id,
                body=ended.body,
                model=ended.model,
                asked_at=ended.asked_at.timestamp(),
            )
            # A call whose response was lost may not have reached the host yet.
            await enqueue(conn, job, run_at=None if ended.host_id is not None else due_in(_ARRIVES_S))


async def _end_prediction(
    services: Services, conn: Connection, prediction: Prediction, *, status: Status, error: str
) -> bool:
    app_id, uid, now = prediction.app_id, prediction.uid, services.clock.now(prediction.app_id)
    await users.lock(conn, app_id, uid)  # Before the row of the prediction, like the deactivation of the user.
    if not await predictions.end_prediction(conn, prediction, status=status, error=error, now=now):
        return False
    await quotas.give_back(conn, app_id, uid, key=prediction.quota_key, now=now, sinks=services.sinks)
    return True


def host_of_prediction(services: Services, prediction: Prediction) -> Host:
    return host_of(services, prediction.app_id, prediction.account)
