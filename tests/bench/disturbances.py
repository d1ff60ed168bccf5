"""Disturbances of a soak, and the anomalies that count."""

from bench.soak.judge import (
    Anomaly,
)
from bench.soak.schedule import Disturbances


def disturbed(target: str, action: str) -> Disturbances:
    """Return a disturbance from 100 to 105 s."""
    found = Disturbances()
    found.begin(target, action, at_s=100).end_s = 105
    return found


def missed(anomalies: list[Anomaly]) -> list[str]:
    return [anomaly.what for anomaly in anomalies if anomaly.miss]
