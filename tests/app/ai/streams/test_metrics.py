"""The metrics of streams and of vendor calls."""

import asyncio
import socket
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from aiohttp import AddrInfoType, ClientSession, TCPConnector
from prometheus_client.parser import text_string_to_metric_families

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.peers.sse_client import all_events, events
from tests.running.servers import Server

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


class Scrape:
    """The metrics of the moment."""

    def __init__(self, text: str) -> None:
        self.samples: Samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        return self.samples.get((name, frozenset(labels.items())), 0)


async def scrape(server: Server) -> Scrape:
    async with server.http.get(f"{server.url}/metrics") as response:
        assert response.status == 200
        return Scrape(await response.text())


async def until(server: Server, name: str, least: float, **labels: str) -> Scrape:
    """Read the metrics until `name` is at least `least`, and return them."""
    async with asyncio.timeout(20):
        while (found := await scrape(server))(name, **labels) < least:
            pass
    return found


async def test_the_times_in_metrics_equal_those_in_the_end_event(talk: Talk, strategy, server: Server) -> None:
    await strategy("good", "say:Here I am")
    before = await scrape(server)
    reported = (await talk.turn("Hello", "good"))[-1].content["latency_ms"]
    after = await scrape(server)

    def grew(name: str, stage: str) -> float:
        labels = {"kind": "conversation", "stage": stage}
        return after(name, **labels) - before(name, **labels)

    for stage in ("first_text", "total", "overhead"):
        assert grew("parley_stream_seconds_count", stage) == 1
        assert grew("parley_stream_seconds_sum", stage) == pytest.approx(reported[stage] / 1000)
    for stage in ("stt", "first_audio"):
        assert grew("parley_stream_seconds_count", stage) == 0


async def test_buckets_range_from_five_milliseconds_to_a_minute(talk: Talk, strategy, server: Server) -> None:
    await strategy("good", "say:Hello")
    await talk.turn("Hello", "good")
    found = await scrape(server)
    bounds = [
        dict(labels)["le"]
        for name, labels in found.samples
        if name == "parley_stream_seconds_bucket" and {("kind", "conversation"), ("stage", "total")} <= labels
    ]
    finite = sorted(float(bound) for bound in bounds if bound != "+Inf")
    assert (finite[0], finite[-1]) == (0.005, 60)
    assert "+Inf" in bounds


async def test_attempts_are_counted_and_timed_by_vendor(talk: Talk, strategy, server: Server) -> None:
    await strategy("bad", "refuse:503")
    await strategy("good", "say:Here I am")
    before = await scrape(server)
    await talk.turn("Hello", "unknown", "bad", "good")
    after = await scrape(server)

    def grew(name: str, **labels: str) -> float:
        return after(name, stage="llm", **labels) - before(name, stage="llm", **labels)

    assert grew("parley_vendor_attempts_total", vendor="none", outcome="failed") == 1
    assert grew("parley_vendor_attempts_total", vendor="vendor_b_llm", outcome="failed") == 1
    assert grew("parley_vendor_attempts_total", vendor="vendor_b_llm", outcome="won") == 1
    assert grew("parley_attempt_first_output_seconds_count", vendor="vendor_b_llm") == 1
    assert grew("parley_attempt_seconds_count", vendor="vendor_b_llm") == 2
    assert grew("parley_attempt_seconds_count", vendor="none") == 0
    first_output_s = grew("parley_attempt_first_output_seconds_sum", vendor="vendor_b_llm")
    assert 0 <= first_output_s <= grew("parley_attempt_seconds_sum", vendor="vendor_b_llm")


async def test_gauges_count_running_streams(talk: Talk, strategy, server: Server, vendor) -> None:
    await strategy("slow", "slow:Once upon")
    async with talk.say("Hello", "slow") as response:
        seen = events(response)
        while (await anext(seen)).name != "assistant_output_chunk":
            pass
        found = await scrape(server)
        assert found("parley_streams_live", kind="conversation") == 1
        assert found("parley_stream_readers") == 1
        assert 100 < found("parley_logs_bytes") < 10_000
        assert found("parley_reader_lag_bytes") == 0
        vendor.release.set()
        async for _ in seen:
            pass
    await server.services.supervisor.idle()
    found = await scrape(server)
    assert found("parley_streams_live", kind="conversation") == 0
    assert found("parley_stream_readers") == found("parley_logs_bytes") == 0


async def test_a_reader_that_does_not_read_lags_behind(talk: Talk, strategy, server: Server, listener) -> None:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)  # Otherwise the kernel buffers megabytes.
    await strategy("long", "many:100000")
    limits = {"lag_bytes": 65_536}  # The play waits for the reader, so that the metrics can be read.
    await server.services.configs.put("default", "limits", "default", limits, author="test", origin=COMMAND)
    async with ClientSession(connector=TCPConnector(socket_factory=_narrow)) as http:
        slow = Talk(replace(server, http=http), talk.uid, talk.token)
        async with slow.say("Hello", "long") as response:
            found = await until(server, "parley_reader_lag_bytes", 10_000)
            assert found("parley_logs_bytes") >= found("parley_reader_lag_bytes")
            assert (await all_events(response))[-1].name == "end"
    await server.services.supervisor.idle()
    assert (await scrape(server))("parley_reader_lag_bytes") == 0


def _narrow(address: AddrInfoType) -> socket.socket:
    made = socket.socket(*address[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    return made


async def test_waiting_calls_are_counted(talk: Talk, strategy, server: Server, vendor) -> None:
    account = {"platform": "vendor_b_llm", "base_url": vendor.url, "api_key": "sk-test", "concurrency": 1}
    await strategy("slow", "slow:Once upon")
    await server.services.configs.put("default", "vendor_accounts", "test", account, author="test", origin=COMMAND)
    labels = {"account": "default/test"}
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(talk.say("Hello", "slow"))
        await until(server, "parley_bulkhead_busy", 1, **labels)
        second = await stack.enter_async_context(talk.say("Hello", "slow"))
        found = await until(server, "parley_bulkhead_waiting", 1, **labels)
        assert found("parley_bulkhead_busy", **labels) == 1
        vendor.release.set()
        assert (await all_events(first))[-1].name == (await all_events(second))[-1].name == "end"
    assert (await scrape(server))("parley_bulkhead_waiting", **labels) == 0


async def test_prometheus_can_parse_all_metrics(talk: Talk, strategy, server: Server) -> None:
    await strategy("good", "say:Hello")
    await talk.turn("Hello", "good")
    async with server.http.get(f"{server.url}/metrics") as response:
        assert response.content_type == "text/plain"
        text = await response.text()
    heads = [line for line in text.splitlines() if line.startswith("# TYPE ")]
    assert len(heads) == len({line.split()[2] for line in heads}), "every metric stands once"
    assert text.endswith("\n")
    assert "process_resident_memory_bytes" in text
