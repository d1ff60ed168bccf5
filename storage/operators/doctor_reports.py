"""The last report of `python -m app doctor`, which the admin API shows. Valkey keeps it."""

from enum import StrEnum

from storage.valkey.client import Valkey, map_errors
from streams.wire.codec import dumps
from streams.wire.model import Model

_KEPT_S = 30 * 24 * 60 * 60


class State(StrEnum):
    GOOD = "good"
    DOUBTFUL = "doubtful"
    """It works, but may fail or harm under some circumstances."""
    BROKEN = "broken"


class Finding(Model):
    """One point of a deployment, as it was found."""

    area: str
    """The part of the deployment, such as `postgres`."""
    point: str
    """The item that was checked, such as `version`."""
    state: State
    seen: str
    """What was found."""
    why: str = ""
    """Why it matters. Empty if it is good."""
    fix: str = ""
    """What to do about it. Empty if it is good."""


class Report(Model):
    checked_at: str
    """When the checks began."""
    host: str
    """The name of the machine on which they ran."""
    public_url: str
    findings: list[Finding]

    @property
    def state(self) -> State:
        """The worst state of all findings."""
        states = {finding.state for finding in self.findings}
        return next((state for state in (State.BROKEN, State.DOUBTFUL) if state in states), State.GOOD)


async def store(valkey: Valkey, report: Report) -> None:
    """Replace the stored report. Raises `StoreError`."""
    with map_errors():
        await valkey.client.set(_key(valkey), dumps(report.model_dump(mode="json")), ex=_KEPT_S)


async def last(valkey: Valkey) -> Report | None:
    """Return the stored report, if there is one. Raises `StoreError`."""
    with map_errors():
        raw = await valkey.client.get(_key(valkey))
    return None if raw is None else Report.model_validate_json(raw)


def _key(valkey: Valkey) -> str:
    return valkey.key("doctor", "report")
