"""The begin of an outage is logged once as an error, and its end once with its duration."""

from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from storage.availability import Availability


def is_available() -> float | None:
    return REGISTRY.get_sample_value("parley_store_available", {"store": "store of the test"})


def test_an_outage_is_one_error_and_one_end_however_many_calls_fail() -> None:
    now = [100.0]
    store = Availability("store of the test", location="here", clock=lambda: now[0])
    assert is_available() == 1
    with capture_logs() as lines:
        for cause in ("it is slow", "it is slow", "it refuses"):
            store.failed(cause, "detail")
        assert is_available() == 0
        now[0] += 20
        store.failed("it refuses")
        store.worked()  # It may fail again within a second.
        now[0] += 2.5
        store.worked()
        store.worked()
    assert is_available() == 1
    assert [(line["event"], line["log_level"], line["cause"], line.get("away_s")) for line in lines] == [
        ("store.unavailable", "error", "it is slow", None),
        ("store.cause_changed", "warning", "it refuses", 20.0),
        ("store.available", "info", "it refuses", 22.5),
    ]
