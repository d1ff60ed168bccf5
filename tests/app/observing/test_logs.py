"""Log lines are JSON objects with the request id, the level, the time and, for exceptions, the stack."""

import asyncio
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.http.request.pipeline import log_anonymous
from streams.wire.codec import loads
from tests.calendar.clock import utc_now
from tests.running.servers import ADMIN_TOKEN, Server
from tests.waiting import until

PROGRAM = """
import asyncio
import structlog
from structlog.testing import capture_logs
from app.observing import logs
from streams.wire.ids import REQUEST_ID

async def main():
    logs.configure(level="info", process="p1")
    log = structlog.get_logger()
    log.debug("not heard")
    log.info("first", number=1, odd=main)
    REQUEST_ID.set("of the task")
    log.warning("second")
    log.bind(bound=True).info("third", request_id="own")
    with capture_logs() as lines:
        log.info("kept back", number=2)
    try:
        raise ValueError("a bug")
    except ValueError as error:
        log.exception("fourth")
        caught = error
    log.error("fifth", exc_info=caught, after=0)
    log.error("sixth", exc_info=None)
    log.info("captured", lines=lines)

asyncio.run(main())
"""


NOT_JSON = r"""
import logging
import structlog
from app.observing import logs

logs.configure(level="info")
log = structlog.get_logger()
log.info("half", text="caf\u00e9 \ud83d", number=3)
log.info("huge", number=1 << 70)
log.info("deep", fields=[{"number": 1 << 70}])
logging.getLogger("a.library").warning("bad %s", "\udcff")
for pool in ("psycopg.pool", "asyncpg.pool"):
    logging.getLogger(pool).warning("error connecting in 'pool-1'")
log.info("after", text="caf\u00e9")
"""


LONG = """
import structlog
from app.observing import logs

logs.configure(level="info")
log = structlog.get_logger()
log.info("long", path="/x" * 10_000, fields=["y" * 10_000], number=7, request_id="mine")
try:
    raise ValueError("z" * 50_000)
except ValueError as error:
    log.error("crashed", exc_info=error)
log.info("short", text="t" * 1000)
"""


async def lines(code: str) -> list[dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=-1, stderr=-1)
    out, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    assert out.endswith(b"}\n")
    return [loads(line) for line in out.splitlines()]


async def test_lines_have_the_event_the_request_the_level_and_the_time_in_this_order() -> None:
    logged = await lines(PROGRAM)
    for line in logged:
        time = line.pop("timestamp")
        assert line.pop("process") == "p1"
        assert time.endswith("Z")
        assert utc_now() - datetime.fromisoformat(time) < timedelta(minutes=1)
    first, second, third, fourth, fifth, sixth, captured = logged
    assert first.pop("odd").startswith("<function main")
    assert list(first) == ["number", "event", "level"]
    assert list(second.items()) == [("event", "second"), ("request_id", "of the task"), ("level", "warning")]
    assert third == {"bound": True, "request_id": "own", "event": "third", "level": "info"}
    for line in (fourth, fifth):
        assert line.pop("exception").startswith("Traceback (most recent call last):\n")
    assert fourth == {"event": "fourth", "request_id": "of the task", "level": "error"}
    assert fifth == {"after": 0, "event": "fifth", "request_id": "of the task", "level": "error"}
    assert sixth == {"event": "sixth", "request_id": "of the task", "level": "error"}
    assert captured["lines"] == [{"number": 2, "event": "kept back", "log_level": "info"}]


async def test_a_line_is_written_for_any_values() -> None:
    half, huge, deep, library, after = await lines(NOT_JSON)
    assert (half["event"], half["text"], half["number"], half["level"]) == (
        "'half'",
        r"'caf\xe9 \ud83d'",
        "3",
        "'info'",
    )
    assert huge["number"] == str(1 << 70)
    assert str(1 << 70) in deep["fields"]
    assert (library["event"], library["logger"], library["level"]) == ("'library'", "'a.library'", "'warning'")
    assert library["message"] == r"'bad \udcff'"
    assert (after["event"], after["text"], after["level"]) == ("after", "caf\u00e9", "info")


async def test_lines_are_bounded_for_any_length_of_their_fields() -> None:
    long, crashed, short = await lines(LONG)
    assert (long["event"], long["request_id"], long["number"], long["level"]) == ("long", "mine", 7, "info")
    assert long["path"] == "/x" * 128
    assert len(long["fields"]) == 256
    assert crashed["exception"].startswith("Traceback (most recent call last):")
    assert len(crashed["exception"]) < 7000
    assert short["text"] == "t" * 1000, "a line of usual length is whole"


def requests_in(lines: list) -> list:
    return [line for line in lines if line["event"] == "request"]


def dropped(lines: list) -> list:
    return [line for line in lines if line["event"] == "request.lines_dropped"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/" + "x" * 8000, 404), ("OPTIONS", "/" + "x" * 3000, 204)],
)
async def test_the_path_in_a_line_is_bounded(server: Server, method: str, path: str, status: int) -> None:
    async def leaves_a_line() -> bool:
        async with server.http.request(method, server.url + path) as response:
            assert response.status == status
        return bool(requests_in(logged))

    with capture_logs() as logged:
        await until(leaves_a_line)  # Earlier tests may have used up the lines of this second.
    assert {len(line["path"]) for line in requests_in(logged)} == {256}


async def test_lines_of_anonymous_requests_are_limited_per_second(server: Server) -> None:
    with capture_logs() as logged:
        for _ in range(200):
            log_anonymous("request.malformed")
        await until(lambda: dropped(logged))  # The next line begins a new second.
        logged.clear()
        for _ in range(150):
            log_anonymous("request.malformed")
        assert len(logged) == 100
        async with server.http.get(f"{server.url}/nothing") as response:
            assert response.status == 404
        await until(lambda: dropped(logged))
    assert requests_in(logged) == []
    assert [line["count"] for line in dropped(logged)] == [51]


async def test_requests_of_known_callers_have_lines_while_anonymous_ones_are_left_out(server: Server) -> None:
    async def call(method: str, path: str, **headers: str) -> None:
        async with server.http.request(method, server.url + path, headers=headers) as response:
            assert response.status in {200, 204}

    with capture_logs() as logged:
        await asyncio.gather(*(call("OPTIONS", "/") for _ in range(120)))
        uid, token = await server.login()
        await call("GET", "/bp/user/me", **{"X-Service-Session-Token": token})
        await call("GET", "/admin/api/kinds", Authorization=f"Bearer {ADMIN_TOKEN}")
    seen = [(line["path"], line["user_id"]) for line in logged if line["event"] == "request"]
    assert seen[-3:] == [("/bp/user/login", uid), ("/bp/user/me", uid), ("/admin/api/kinds", None)]
