"""With tracing, each stream is a span with its stages and attempts as children."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.environment import SettingsError
from app.services import open_services
from app.settings import Settings
from deploy.seeds import seed
from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.streams.collector import Collector, attributes, running_collector
from tests.calendar.clock import epoch_ns
from tests.peers.sse_client import all_events
from tests.running.servers import MASTER_KEY, SERVER_KEY, running_server

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ENV = {
    "DATABASE_URL": "postgresql:///parley",
    "REDIS_URL": "redis://127.0.0.1",
    "PARLEY_MASTER_KEY": MASTER_KEY,
    "PARLEY_ADMIN_TOKEN": "an operator of the tests",
}
MS = 1_000_000


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    async with running_collector() as running:
        yield running


@pytest.fixture
def settings(settings: Settings, collector: Collector) -> Settings:
    return replace(settings, traces_url=collector.url)


def named(spans: list[Span], name: str) -> Span:
    return next(span for span in spans if span.name == name)


def lost() -> float:
    return REGISTRY.get_sample_value("parley_traces_lost_total") or 0


async def test_stream_is_a_span_with_its_stages_and_attempts_below(talk: Talk, strategy, collector) -> None:
    await strategy("bad", "refuse:503")
    await strategy("good", "say:Here I am")
    talk.headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-Id": "a-request"}
    end = (await talk.turn("Hello", "bad", "good"))[-1].content

    root, children = await collector.trace()

    assert (root.name, root.kind) == ("conversation", Span.SPAN_KIND_SERVER)
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)
    about = attributes(root)
    assert len(about.pop("parley.stream_id")) == 32
    assert about == {
        "parley.request_id": "a-request",
        "parley.app": "default",
        "parley.kind": "conversation",
        "parley.outcome": "end",
        "parley.overhead_ms": end["latency_ms"]["overhead"],
    }
    assert [span.name for span in children] == [
        "admission",
        "input",
        "first_token",
        "first_text",
        "end",
        "attempt llm",
        "attempt llm",
    ]
    for span in children:
        assert (span.trace_id, span.parent_span_id) == (root.trace_id, root.span_id)
        assert root.start_time_unix_nano <= span.start_time_unix_nano + 20 * MS
        assert span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano + 20 * MS
    assert collector.resource["service.name"] == "parley"


async def test_spans_have_the_times_of_the_receipt(talk: Talk, strategy, collector) -> None:
    await strategy("good", "say:Here I am")
    before_ns = epoch_ns()
    reported = (await talk.turn("Hello", "good"))[-1].content["latency_ms"]

    root, children = await collector.trace()

    def since_the_head_ms(at_ns: int) -> float:
        return (at_ns - root.start_time_unix_nano) / MS

    assert before_ns <= root.start_time_unix_nano <= epoch_ns()
    assert since_the_head_ms(root.end_time_unix_nano) == reported["total"]
    for stage in ("admission", "input", "first_token", "first_text"):
        assert since_the_head_ms(named(children, stage).end_time_unix_nano) == reported[stage]
    assert since_the_head_ms(named(children, "first_token").start_time_unix_nano) == reported["input"]
    assert named(children, "end").end_time_unix_nano == root.end_time_unix_nano


async def test_attempts_contain_the_platform_and_the_outcome(talk: Talk, strategy, collector) -> None:
    await strategy("bad", "refuse:503")
    await strategy("good", "say:Here I am")
    await talk.turn("Hello", "bad", "good")

    _, children = await collector.trace()

    failed, won = [span for span in children if span.name == "attempt llm"]
    assert attributes(failed) == {
        "parley.strategy": "bad",
        "parley.vendor": "vendor_b_llm",
        "parley.outcome": "failed",
        "error.type": "backend unavailable",
    }
    assert failed.status.code == Status.STATUS_CODE_ERROR
    assert not failed.events
    assert attributes(won) == {
        "parley.strategy": "good",
        "parley.vendor": "vendor_b_llm",
        "parley.outcome": "won",
    }
    assert won.kind == Span.SPAN_KIND_CLIENT
    assert won.status.code == Status.STATUS_CODE_UNSET
    assert [event.name for event in won.events] == ["first output"]
    assert won.start_time_unix_nano <= won.events[0].time_unix_nano <= won.end_time_unix_nano
    assert failed.end_time_unix_nano <= won.start_time_unix_nano + 20 * MS


async def test_stream_that_fails_is_a_span_that_failed(talk: Talk, strategy, collector) -> None:
    await strategy("bad", "refuse:503")
    assert (await talk.turn("Hello", "bad"))[-1].name == "error"
    root, _ = await collector.trace()
    assert root.status.code == Status.STATUS_CODE_ERROR
    assert attributes(root)["parley.outcome"] == "all_strategies_failed"


async def test_client_errors_do_not_mark_the_span_as_failed(talk: Talk, strategy, collector) -> None:
    await strategy("good", "say:Hello")
    assert (await talk.turn(" ", "good"))[-1].name == "error"
    root, children = await collector.trace()
    assert root.status.code == Status.STATUS_CODE_UNSET
    assert attributes(root)["parley.outcome"] == "invalid_parameter"
    assert [span.name for span in children] == ["admission", "input", "end"]


async def test_traces_contain_no_texts_and_no_keys(talk: Talk, strategy, collector) -> None:
    await strategy("echo", "echo")  # The sandbox repeats the key in its error.
    await strategy("good", "say:Answered")
    await talk.turn("Question", "echo", "good")
    await collector.trace()
    for word in (b"Question", b"Answered", b"sk-test", talk.uid.encode(), talk.token.encode()):
        assert word not in collector.bodies[0]


async def test_request_that_is_not_sampled_is_not_traced(talk: Talk, strategy, collector) -> None:
    await strategy("good", "say:Hello")
    talk.headers = {"traceparent": f"00-{TRACE}-{PARENT}-00", "X-Request-Id": "not-sampled"}
    await talk.turn("Hello", "good")
    talk.headers = {"traceparent": "nonsense", "X-Request-Id": "sampled"}
    await talk.turn("Hello", "good")
    root, _ = await collector.trace()
    assert attributes(root)["parley.request_id"] == "sampled"
    assert root.trace_id.hex() != TRACE
    assert not root.parent_span_id


@pytest.mark.usefixtures("local_vendors")
async def test_speech_is_traced_from_its_text_to_its_first_audio(talk: Talk, collector) -> None:
    async with talk.post("/bp/ai/audio/tts", json={"text": "Hello.", "strategies": ["local"]}) as response:
        await all_events(response)
    root, children = await collector.trace()
    assert root.name == "tts"
    assert [span.name for span in children] == ["admission", "input", "first_audio", "end", "attempt tts"]


async def test_a_refusing_collector_loses_traces_but_no_stream(talk: Talk, strategy, collector) -> None:
    await strategy("good", "say:Hello")
    collector.status, before = 400, lost()
    assert (await talk.turn("Hello", "good"))[-1].name == "end"
    await collector.trace()
    collector.status = 200
    assert (await talk.turn("Hello", "good"))[-1].name == "end"
    await collector.trace()  # The second batch is sent after the first was dropped.
    assert lost() == before + 1


async def test_remaining_spans_are_sent_when_the_process_ends(settings, listener, collector) -> None:
    async with open_services(settings) as services:
        await _one_stream(services, listener)
    assert attributes((await collector.trace())[0])["parley.kind"] == "conversation"


async def test_a_hanging_collector_does_not_delay_the_end_of_the_process(settings, listener, collector) -> None:
    collector.open.clear()
    before = lost()
    async with open_services(settings) as services:
        await _one_stream(services, listener)
        async with asyncio.timeout(10):
            await collector.requested.wait()
        await _one_stream(services, listener)
        begin = time.monotonic()
        await services.traces.close()
        assert time.monotonic() - begin < 4
        collector.open.set()
    assert lost() == before + 1


async def _one_stream(services, listener) -> None:
    await seed(services.configs, {"PARLEY_SERVER_KEY": SERVER_KEY})
    with listener.dup() as own:
        async with running_server(services, own) as server:
            account = {"platform": "vendor_b_llm", "base_url": "http://127.0.0.1:9"}
            await services.configs.put(
                "default", "vendor_accounts", "never", account, author="test", origin=COMMAND
            )
            value = {"chat": {"account": "never", "model": "never"}}
            await services.configs.put(
                "default", "conversation", "never-asked", value, author="test", origin=COMMAND
            )
            uid, token = await server.login()
            assert (await Talk(server, uid, token).turn(" ", "never-asked"))[-1].name == "error"


async def test_without_the_package_a_log_line_replaces_traces(settings, listener, collector, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "app.observing.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with capture_logs() as lines:
        async with open_services(settings) as services:
            assert services.traces is None
            await _one_stream(services, listener)
    assert [line["log_level"] for line in lines if line["event"] == "traces.disabled"] == ["error"]
    assert "parley[otel]" in next(line["reason"] for line in lines if line["event"] == "traces.disabled")
    assert not collector.bodies


@pytest.mark.parametrize(
    ("env", "url"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "http://c:4318/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c/otlp/"}, "https://c/otlp/v1/traces"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/t"}, "http://c/t"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d/t"},
            "http://d/t",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, None),
    ],
)
def test_the_collector_is_set_by_the_variables_of_opentelemetry(env, url) -> None:
    assert Settings.from_env({**ENV, **env}).traces_url == url


@pytest.mark.parametrize("url", ["collector:4317", "http://", "http://[", "http://c d", "http:///v1/traces"])
@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:4318/v1/traces"),
    ],
)
def test_an_invalid_collector_url_is_refused_at_the_start(name: str, example: str, url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_env({**ENV, name: url})
    assert str(refused.value) == f"parley: {name} must be a URL such as {example}"


INVALID = {
    "OTEL_EXPORTER_OTLP_CERTIFICATE=/nope": "must be a file that can be read: no such file or directory",
    "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY=/": "must be a file that can be read: is a directory",
    "OTEL_EXPORTER_OTLP_TIMEOUT=soon": "must be a number of seconds",
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=nan": "must be a number of seconds",
    "OTEL_EXPORTER_OTLP_COMPRESSION=zip": "must be one of none, gzip, deflate",
    "OTEL_TRACES_SAMPLER=foo": (
        "must be one of always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, "
        "parentbased_traceidratio"
    ),
    "OTEL_TRACES_SAMPLER_ARG=1.5": "must be a number from 0 to 1",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=foo": "must be a whole number",
}


@pytest.mark.parametrize("variable", INVALID)
def test_an_invalid_variable_of_opentelemetry_is_refused_if_traces_are_on(variable: str) -> None:
    name, _, value = variable.partition("=")
    assert Settings.from_env({**ENV, name: value}).traces_url is None
    with pytest.raises(SettingsError) as refused:
        Settings.from_env({**ENV, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", name: value})
    assert str(refused.value) == f"parley: {name} {INVALID[variable]}"


def test_valid_variables_of_opentelemetry_are_accepted(tmp_path: Path) -> None:
    certificate = tmp_path / "collector.pem"
    certificate.touch()
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(certificate),
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "2.5",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "GZIP",
        "OTEL_TRACES_SAMPLER": "traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.25",
        "OTEL_ATTRIBUTE_COUNT_LIMIT": "",
        "OTEL_SPAN_LINK_COUNT_LIMIT": "0",
    }
    assert Settings.from_env({**ENV, **given}).traces_url == "http://c/v1/traces"
