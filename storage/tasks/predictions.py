"""Predictions of users at model hosts (§4.16)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal

from storage.jobs.jobs import Job, cancel_job, due_in, enqueue
from storage.postgres.connection import one
from storage.postgres.database import Connection
from streams.wire.codec import dumps
from streams.wire.errors import ItemNotFound, listed
from streams.wire.long_integers import loads_exact
from streams.wire.owned import Owned

Status = Literal["starting", "processing", "succeeded", "failed", "canceled"]


class PredictionNotFound(ItemNotFound):
    """No prediction of the user has this id."""

    def __init__(self, prediction_id: str) -> None:
        super().__init__(f"prediction {listed([prediction_id])} does not exist")


PREDICTION = Owned(PredictionNotFound)


class FollowPrediction(Job):
    """Begin a prediction at its host, or poll it until it has ended. End a prediction that a client has awaited."""

    task: ClassVar[str] = "follow_prediction"
    attempts: ClassVar[int] = 20
    retry_after_s: ClassVar[float] = 2
    app_id: str
    uid: str
    prediction_id: str


class CancelPrediction(Job):
    """Cancel a prediction at its host that nobody waits for any more."""

    task: ClassVar[str] = "cancel_prediction"
    attempts: ClassVar[int] = 8
    private: ClassVar[frozenset[str]] = frozenset({"body"})
    app_id: str
    uid: str
    account: str
    host_id: str | None
    """`None`: the response of the host was lost, if it was called at all."""
    body: str
    """The request to the host, as JSON."""
    model: str | None
    asked_at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class Prediction:
    prediction_id: str
    app_id: str
    uid: str
    strategy: str
    account: str
    """The account of the host. It stays the same if the strategy changes."""
    model: str | None
    """`owner/name` if the model's own endpoint is called."""
    body: str
    """The request to the host, as JSON."""
    is_awaited: bool
    """Whether a client waits for it."""
    host_id: str | None
    status: Status
    output: str | None
    """The host's output as JSON, in which the keys in `file_keys` replace copied files."""
    file_keys: Sequence[str]
    error: str
    created_at: datetime
    asked_at: datetime | None
    """When the host was called, in real time. Without a `host_id`, its response was lost."""
    ended_at: datetime | None

    @property
    def quota_key(self) -> str:
        return f"prediction:{self.prediction_id}"

    @property
    def job_key(self) -> str:
        return f"prediction/{self.prediction_id}"

    def job(self) -> FollowPrediction:
        return FollowPrediction(app_id=self.app_id, uid=self.uid, prediction_id=self.prediction_id)


COLUMNS = ", ".join(Prediction.__slots__)
_ADD = f"""
insert into predictions (
    prediction_id, app_id, uid, strategy, account, model, body, is_awaited, created_at, asked_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning {COLUMNS}
"""


async def add(
    conn: Connection,
    app_id: str,
    uid: str,
    *,
    prediction_id: str,
    strategy: str,
    account: str,
    model: str | None,
    body: dict[str, Any],
    awaited_s: float | None,
    now: datetime,
    asked_at: datetime | None,
) -> Prediction:
    """Store a prediction, and the job that follows it. `conn` is in a transaction.

    `awaited_s`: how long a client may wait, after which the job ends the prediction. `None`: the job makes it.
    """
    added = await conn.fetchrow(
        _ADD, prediction_id, app_id, uid, strategy, account, model,
        dumps(body).decode(), awaited_s is not None, now, asked_at,
    )  # fmt: skip
    prediction = Prediction(**one(added))
    run_at = None if awaited_s is None else due_in(awaited_s)
    await enqueue(conn, prediction.job(), key=prediction.job_key, run_at=run_at)
    return prediction


_FIND = f"select {COLUMNS} from predictions where app_id = $1 and uid = $2 and prediction_id = $3"
_LOCK = f"{_FIND} for update"
_FIND_BY_HOST = f"select {COLUMNS} from predictions where app_id = $1 and account = $2 and host_id = $3"


async def find(conn: Connection, app_id: str, uid: str, *, prediction_id: str) -> Prediction | None:
    row = await conn.fetchrow(_FIND, app_id, uid, prediction_id)
    return None if row is None else Prediction(**row)


async def find_by_host(conn: Connection, app_id: str, *, account: str, host_id: str) -> Prediction | None:
    row = await conn.fetchrow(_FIND_BY_HOST, app_id, account, host_id)
    return None if row is None else Prediction(**row)


_ASKED = "update predictions set asked_at = $2 where prediction_id = $1 and host_id is null and ended_at is null"
_CLAIM = """
update predictions set host_id = $2 where prediction_id = $1 and host_id is null and not exists (
    select from predictions other
    where (other.app_id, other.account, other.host_id) = (predictions.app_id, predictions.account, $2))
returning true
"""
_KNOWN = "select host_id from predictions where host_id = any($1)"
_PROCESSING = "update predictions set status = 'processing' where prediction_id = $1 and status = 'starting'"


async def set_asked(conn: Connection, prediction_id: str, *, asked_at: datetime | None) -> None:
    """Store the time at which the host is called for a prediction, or that it does not know the prediction."""
    await conn.execute(_ASKED, prediction_id, asked_at)


async def claim(conn: Connection, prediction_id: str, *, host_id: str) -> bool:
    """Store the host's id of a prediction. Return `False` if it has one, or another one has this id."""
    return await conn.fetchval(_CLAIM, prediction_id, host_id) is not None


async def known_ids(conn: Connection, /, *, host_ids: Sequence[str]) -> set[str]:
    """Return the ids of a host that predictions of any app have, because apps may share the host's account."""
    return {row["host_id"] for row in await conn.fetch(_KNOWN, host_ids)}


async def set_processing(conn: Connection, prediction_id: str) -> None:
    await conn.execute(_PROCESSING, prediction_id)


_END = """
update predictions set status = $2, output = $3, file_keys = $4, error = $5, ended_at = $6 where prediction_id = $1
"""


async def end_prediction(
    conn: Connection,
    prediction: Prediction,
    *,
    status: Status,
    output: object = None,
    file_keys: Sequence[str] = (),
    error: str = "",
    now: datetime,
) -> bool:
    """Store the end of a prediction. Return `False` if it has ended, or was deleted. `conn` is in a transaction."""
    locked = await conn.fetchrow(_LOCK, prediction.app_id, prediction.uid, prediction.prediction_id)
    if locked is None or locked["ended_at"] is not None:
        return False
    text = None if output is None else dumps(output).decode()
    await conn.execute(_END, prediction.prediction_id, status, text, list(file_keys), error, now)
    await cancel_job(conn, key=prediction.job_key)
    return True


async def follow_soon(conn: Connection, prediction: Prediction, *, in_s: float = 0) -> None:
    """Store the job to run after `in_s` seconds. It replaces a waiting one. `conn` is in a transaction."""
    await cancel_job(conn, key=prediction.job_key)
    await enqueue(conn, prediction.job(), key=prediction.job_key, run_at=due_in(in_s) if in_s else None)


def output_with(prediction: Prediction, links: dict[str, str]) -> list[str]:
    """Return the output in the form of the interface: a list of texts, in which `links` replace keys of files."""
    if prediction.output is None:
        return []
    value = replace_texts(loads_exact(prediction.output.encode()), links)
    entries = value if isinstance(value, list) else [value]
    return [entry if isinstance(entry, str) else dumps(entry).decode() for entry in entries if entry is not None]


def replace_texts(value: Any, texts: dict[str, str]) -> Any:
    """Return a JSON value in which the texts that are keys of `texts` are replaced."""
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, list):
        return [replace_texts(entry, texts) for entry in value]
    if isinstance(value, dict):
        return {name: replace_texts(entry, texts) for name, entry in value.items()}
    return value
