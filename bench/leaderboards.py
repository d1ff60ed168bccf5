"""Measure boards with many members: uploads, queries of the best, ranks beside uploads, and a lost index.

`python -m bench.leaderboards` starts a server that has the first core for itself, and fills a board with a million
members. The last row loses the index of the board while ranks are queried.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from redis.asyncio import Redis

from bench.arrivals import prepare
from bench.client import Target
from bench.deployment import APP, Deployment, DeploymentSpec, measure
from bench.generated_section import write_between
from bench.keep_alive import KeepAlive, request
from bench.machine import Cores, describe
from bench.request_rows import Next, Row, paced, repeat, table
from bench.scenarios import seconds
from deploy.running import Failed
from streams.tasks import background
from streams.wire.codec import loads

MARKS = ("<!-- leaderboards: written by bench.leaderboards -->", "<!-- /leaderboards -->")
_UPLOAD, _QUERY = "/bp/leaderboard/data", "/bp/leaderboard"
_BOARD = "race"
_PLAYERS = 500
_BATCH = 50_000
_FILL_S = 300
_BUILD_S = 300
_RANKS_PER_S = 1000
_UPLOADS_PER_S = 200

_USERS = """
insert into users (app_id, uid, create_time, last_login)
select $1, 'member' || lpad(n::text, 26, '0'), now(), now() from generate_series($2::int, $3::int) n
"""
_SCORES = """
insert into leaderboard_scores (period_id, app_id, uid, score, change, posted_at)
select (select max(period_id) from leaderboard_periods), $1, 'member' || lpad(n::text, 26, '0'),
    floor(random() * 1000000), nextval('leaderboard_changes'), now() from generate_series($2::int, $3::int) n
"""


@dataclass(frozen=True, slots=True)
class Board:
    """A board of a deployment, whose players are the users of its tokens."""

    deployment: Deployment

    @property
    def target(self) -> Target:
        return self.deployment.target

    def upload(self) -> bytes:
        body = {"name": _BOARD, "data": {"score": random.randrange(1_000_000)}}  # noqa: S311 - any scores will do
        return request(self.target, "POST", _UPLOAD, body, token=self._player())

    def best(self) -> bytes:
        return request(self.target, "POST", _QUERY, {"name": _BOARD, "from": 1, "to": 100}, token=self._player())

    def rank(self) -> bytes:
        return request(self.target, "POST", _QUERY, {"name": _BOARD, "from": 1, "to": 1}, token=self._player())

    def _player(self) -> str:
        return random.choice(self.target.tokens)  # noqa: S311


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    prepare()
    cores = Cores.split()
    spec = DeploymentSpec(frozenset(), users=_PLAYERS, configs={f"leaderboards/{_BOARD}": {"size": 1000}})
    try:
        rows, notes = measure(spec, cores, lambda deployment: _measure(Board(deployment), args))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    report = f"{describe(cores)}\n\n{table(rows)}\n\n{notes}\n"
    print(report, end="")
    if args.report:
        write_between(args.report, MARKS, f"\n{report}\n")
    return int(not all(row.met for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.leaderboards", description=__doc__)
    parser.add_argument("--members", type=int, default=1_000_000, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--clients", type=int, default=16, metavar="N", help="at once (default: %(default)s)")
    parser.add_argument("--for", dest="for_s", type=seconds, default=10, metavar="TIME", help="(default: 10 s)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the table between the marks in FILE")
    return parser


async def _measure(board: Board, args: argparse.Namespace) -> tuple[list[Row], str]:
    pids, for_s = board.deployment.pids, args.for_s
    await _ask(board, board.upload)
    try:
        async with asyncio.timeout(_FILL_S):
            await _fill(board.deployment, args.members)
    except TimeoutError:
        raise Failed(f"the board was not filled within {_FILL_S} s") from None
    size = await _used_bytes(board.deployment)
    built_s = await _until_built(board)
    size = await _used_bytes(board.deployment) - size
    await repeat(Row(""), board.target, board.upload, clients=args.clients, pids=pids, requests=2 * _PLAYERS)
    uploads = Row("upload of a score", per_s=1_500)
    await repeat(uploads, board.target, board.upload, clients=args.clients, pids=pids, for_s=for_s)
    best = Row("the best 100, from 4 clients", p99_ms=20)
    await repeat(best, board.target, board.best, clients=4, pids=pids, for_s=for_s)
    ranks = await _beside_uploads(board, for_s=for_s)
    lost = Row("a rank, while the index is lost and built")
    rebuilt_s = await _lose(board, lost)
    notes = (
        f"{args.members:,} members. Index: {size / args.members:,.0f} bytes a member, built in {built_s:.1f} s,"
        f" and in {rebuilt_s:.1f} s while ranks were queried."
    )
    return [uploads, best, *ranks, lost], notes


async def _ask(board: Board, next_request: Next) -> None:
    connection = await KeepAlive.open(board.target.url)
    status = await connection.ask(next_request())
    connection.close()
    if status != 200:
        raise Failed(f"the board answered {status}")


async def _fill(deployment: Deployment, members: int) -> None:
    assert deployment.stores is not None, "the benchmark has started them"
    conn = await asyncpg.connect(deployment.stores.database_url)
    try:
        for first in range(1, members, _BATCH):
            for statement in (_USERS, _SCORES):
                await conn.execute(statement, APP, first, min(members, first + _BATCH - 1))
        # Otherwise the rows would also measure the writes that the fill has left pending.
        await conn.execute("vacuum analyze")
        await conn.execute("checkpoint")
    finally:
        await conn.close()


def _valkey(deployment: Deployment) -> Redis:
    assert deployment.stores is not None, "the benchmark has started them"
    return Redis.from_url(deployment.stores.redis_url)


async def _used_bytes(deployment: Deployment) -> int:
    async with _valkey(deployment) as client:
        return int((await client.info("memory"))["used_memory"])


async def _drop(deployment: Deployment) -> None:
    async with _valkey(deployment) as client:
        await client.delete(*[key async for key in client.scan_iter(f"*:board:{_BOARD}*", count=10_000)])


async def _is_built(deployment: Deployment) -> bool:
    async with _valkey(deployment) as client:
        keys = [key async for key in client.scan_iter(f"*:board:{_BOARD}*:changes", count=10_000)]
        return any([await client.hget(key, "") == b"ready" for key in keys])


async def _until_built(board: Board) -> float:
    """Lose the index, and return the seconds until it is built."""
    await _drop(board.deployment)
    begun = time.perf_counter()
    await _ask(board, board.rank)
    while not await _is_built(board.deployment):
        if time.perf_counter() > begun + _BUILD_S:
            raise Failed("the index was not built")
        await asyncio.sleep(0.05)
    return time.perf_counter() - begun


async def _beside_uploads(board: Board, *, for_s: float) -> list[Row]:
    """Query ranks at a steady rate beside uploads. The second row has the times that the server has logged."""
    name = f"a rank, {_RANKS_PER_S:,}/s beside {_UPLOADS_PER_S}/s uploads"
    pids, log = board.deployment.pids, board.deployment.log
    assert log is not None, "the benchmark has started the server"
    row, uploads = Row(f"{name}, at the client"), Row("")
    begun = log.stat().st_size
    async with background(
        paced(uploads, board.target, board.upload, pids=pids, for_s=for_s, every_s=1 / _UPLOADS_PER_S)
    ):
        await paced(row, board.target, board.rank, pids=pids, for_s=for_s, every_s=1 / _RANKS_PER_S)
    server = Row(f"{name}, in the server", p99_ms=2, took_s=row.took_s, cpu_s=row.cpu_s, statuses=row.statuses)
    with log.open("rb") as lines:
        lines.seek(begun)
        entries = [loads(line) for line in lines if line.endswith(b"}\n")]
    server.times_s = [entry["ms"] / 1000 for entry in entries if entry.get("path") == _QUERY]
    return [row, server]


async def _lose(board: Board, row: Row) -> float:
    """Lose the index while ranks are queried. Return the seconds until it is built."""
    async with background(repeat(row, board.target, board.rank, clients=1, pids=board.deployment.pids)) as asking:
        built_s = await _until_built(board)
        asking.cancel()
    row.took_s = built_s
    return built_s


if __name__ == "__main__":
    sys.exit(main())
