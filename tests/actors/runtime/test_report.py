"""A bug ends one stream with an event, is logged once with its stack, and is counted."""

from types import SimpleNamespace

from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from actors.runtime.context import StreamContext
from tests.actors.runtime.single_actor import actor_of, names, play


async def release() -> None:
    return None


def crashes() -> float:
    return REGISTRY.get_sample_value("parley_stream_crashes_total", {"kind": "test"}) or 0


def ended(outcome: str) -> float:
    return REGISTRY.get_sample_value("parley_streams_ended_total", {"kind": "test", "outcome": outcome}) or 0


async def test_a_crash_causes_one_event_one_log_line_and_one_count() -> None:
    async def crash(_: StreamContext) -> dict:
        raise RuntimeError("a bug")

    before, failed = crashes(), ended("internal")
    actor = actor_of(crash, release)
    with capture_logs() as lines:
        await actor.run()
    assert await names(actor) == ["start", "error"]
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert (line["event"], line["stream_id"]) == ("stream.crashed", "stream")
    assert str(line["exc_info"]) == "a bug"
    assert line["exc_info"].__traceback__ is not None
    assert (crashes(), ended("internal")) == (before + 1, failed + 1)


async def test_end_is_reported_once_with_its_times() -> None:
    before, good = crashes(), ended("end")
    actor = actor_of(play, release)
    with capture_logs() as lines:
        await actor.run()
    (line,) = [line for line in lines if line["event"] == "stream.ended"]
    assert (line["outcome"], line["events"], line["user_id"]) == ("end", 2, "user")
    assert line["total"] >= 0
    assert (crashes(), ended("end")) == (before, good + 1)


async def test_observer_is_notified_of_the_end_once() -> None:
    reported = []
    actor = actor_of(play, release)
    traces = SimpleNamespace(add=lambda ctx, kind, outcome: reported.append((ctx.stream_id, kind, outcome)))
    actor.ctx.resources.traces = traces
    await actor.run()
    assert reported == [("stream", "test", "end")]
