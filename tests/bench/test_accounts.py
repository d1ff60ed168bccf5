"""The generator of `bench.accounts` and `bench.leaderboards`, and its verdicts."""

import asyncio
import os
from collections import Counter

import pytest

from bench.client import Target
from bench.keep_alive import KeepAlive, request
from bench.request_rows import Row, paced, repeat
from tests.running.servers import Server


async def test_connections_are_kept_alive_and_statuses_are_counted(guest: Server):
    _, token = await guest.login()
    target = Target(guest.url, (), "default")
    read = request(target, "GET", "/bp/user/me", token=token)
    wrong = request(target, "POST", "/bp/user/login", {"device": {}})
    connection = await KeepAlive.open(target.url)
    assert [await connection.ask(call) for call in (read, wrong, read)] == [200, 400, 200]
    connection.close()

    row, steady = Row("reads"), Row("paced reads")
    await repeat(row, target, lambda: read, clients=4, pids=[os.getpid()], requests=20)
    await paced(steady, target, lambda: read, pids=[os.getpid()], for_s=0.1, every_s=0.005)
    assert 20 <= row.statuses[200] < 24
    assert (row.failed, steady.statuses) == (0, {200: 20})
    assert len(row.times_s) == row.statuses[200]


async def test_a_lost_connection_is_an_error():
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        connection = await KeepAlive.open(f"http://127.0.0.1:{port}")
        with pytest.raises(ConnectionError):
            await connection.ask(b"GET / HTTP/1.1\r\n\r\n")


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (Row("fast", per_s=100, took_s=1, statuses=Counter({200: 100})), True),
        (Row("slow", per_s=100, took_s=1, statuses=Counter({200: 99})), False),
        (Row("failing", per_s=100, took_s=1, statuses=Counter({200: 100, 503: 1})), False),
        (Row("prompt", p99_ms=20, took_s=1, statuses=Counter({200: 2}), times_s=[0.01, 0.02]), True),
        (Row("late", p99_ms=20, took_s=1, statuses=Counter({200: 2}), times_s=[0.021] * 200), False),
    ],
    ids=lambda value: value.name if isinstance(value, Row) else "",
)
def test_a_row_is_met_if_it_is_fast_enough_and_nothing_failed(row: Row, met: bool):
    assert row.met is met
    assert row.cells()[-1] == ("met" if met else "missed")
