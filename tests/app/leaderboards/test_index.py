"""The index of a board is rebuilt when it is lost, and loses no score, whatever happens meanwhile."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from storage.jobs.jobs import enqueue
from storage.leaderboards import leaderboards
from storage.leaderboards.leaderboards import CheckBoardIndexes
from tests.app.callers import work_off
from tests.app.leaderboards.boards import Boards

SORTED = """
select uid from leaderboard_scores join leaderboard_periods using (period_id)
where board = $1 order by score desc, change
"""


async def lose(boards: Boards, kind: str) -> None:
    """Delete the index of the board, or a part of it."""
    endings = {"all": (b"ranks", b"changes"), "ranks": (b"ranks",), "changes": (b"changes",)}[kind]
    if keys := [key for key in await boards.keys() if key.endswith(endings)]:
        await boards.server.services.valkey.client.delete(*keys)


@pytest.mark.parametrize("kind", ["all", "ranks", "changes"])
async def test_lost_index_is_rebuilt(boards: Boards, kind: str) -> None:
    await boards.configure()
    users = await boards.users(5)
    for uid in users:
        await boards.put(uid, 3)
    assert await boards.ranked(users[0]) == users
    await boards.indexed()
    await lose(boards, kind)
    assert await boards.ranked(users[0]) == users
    await boards.indexed()
    await lose(boards, kind)
    await boards.put(users[4], 9)
    await boards.indexed()
    assert await boards.ranked(users[0]) == [users[4], *users[:4]]
    found = await boards.read(users[4], around=1)
    assert [entry["member"] for entry in found["around_data"]] == [users[4], users[0]]


async def test_index_that_is_lost_while_it_is_built_is_built_again(boards: Boards) -> None:
    await boards.configure()
    await boards.without_limits()
    users = await boards.users(4)
    await boards.put(users[0], 0)
    await many(boards, 5000)
    await lose(boards, "all")
    assert (await boards.read(users[0]))["self_rank"] == 5001
    await lose(boards, "all")
    assert (await boards.read(users[0]))["self_rank"] == 5001
    for _ in range(20):
        assert (await boards.read(users[0]))["self_rank"] == 5001
        await lose(boards, "changes")
    await boards.read(users[0])
    await boards.indexed()
    found = await boards.read(users[0], around=2)
    assert [entry["rank"] for entry in found["around_data"]] == [4999, 5000, 5001]


async def test_many_queries_at_once_are_answered_while_the_index_is_built(boards: Boards) -> None:
    await boards.configure()
    one = await boards.user()
    await boards.put(one, 0)
    await many(boards, 5000)
    await lose(boards, "all")
    found = await asyncio.gather(*(boards.read(one, around=1) for _ in range(100)))
    assert {(board["self_rank"], len(board["rank_data"]), len(board["around_data"])) for board in found} == {
        (5001, 100, 2)
    }
    await boards.indexed()


async def many(boards: Boards, count: int) -> None:
    """Add users with higher scores than 0 to the board."""
    services = boards.server.services
    async with services.database.transaction() as conn:
        await conn.execute(
            "insert into users (app_id, uid, create_time, last_login) select 'default', 'm' || n, now(), now()"
            " from generate_series(1, $1) n",
            count,
        )
        await conn.execute(
            """insert into leaderboard_scores (period_id, app_id, uid, score, change, posted_at)
            select (select max(period_id) from leaderboard_periods where board = $2), 'default', 'm' || n,
                n % 100 + 1, nextval('leaderboard_changes'), now() from generate_series(1, $1) n""",
            count,
            boards.name,
        )


async def test_no_score_is_lost_by_uploads_while_the_index_is_lost_again_and_again(boards: Boards) -> None:
    await boards.configure()
    await boards.without_limits()
    users = await boards.users(12)
    await boards.put(users[0], 0)
    await many(boards, 2500)
    playing = asyncio.Event()

    async def play(uid: str, seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311 - a reproducible game
        for _ in range(30):
            await boards.put(uid, chance.randrange(200))
            if chance.random() < 0.2:
                await boards.read(uid, around=3)

    async def break_down() -> None:
        chance = random.Random(5)  # noqa: S311
        while not playing.is_set():
            await lose(boards, chance.choice(["all", "ranks", "changes"]))
            await boards.read(users[0])

    async def game() -> None:
        # A user also plays on two devices at once.
        await asyncio.gather(*(play(uid, index % 9) for index, uid in enumerate([*users, *users[:4]])))
        playing.set()

    await asyncio.gather(game(), break_down())
    await boards.read(users[0])
    await boards.indexed()
    expected = [row["uid"] for row in await boards.fetch(SORTED, boards.name)]
    await boards.configure(size=5000)
    found = [uid for first in (1, 1002, 2003) for uid in await boards.ranked(users[0], **span(first))]
    assert found == expected
    for uid in users:
        assert (await boards.read(uid))["self_rank"] == expected.index(uid) + 1


def span(first: int) -> dict[str, int]:
    return {"from": first, "to": first + 1000}


async def test_score_of_a_process_that_died_before_it_was_indexed_is_added(boards: Boards) -> None:
    await boards.configure()
    one, two = await boards.users(2)
    began = (await boards.put(one, 5))["period"]
    await boards.read(one)
    await boards.indexed()
    services = boards.server.services
    created = await boards.fetch("select starts_at from leaderboard_periods where board = $1", boards.name)
    async with services.database.connection() as conn:
        await leaderboards.upload(
            conn, "default", two, board=boards.name, score=6, extra=None, starts=[created[0]["starts_at"]],
            descending=True, has_rewards=False, offset_s=0,
        )  # fmt: skip
    assert await boards.ranked(two) == [one]
    for _ in range(2):
        async with services.database.connection() as conn:
            await enqueue(conn, CheckBoardIndexes())
        await work_off(services)
        assert await boards.ranked(two) == [two, one]
    assert (await boards.read(two))["period"] == began


SCORES = st.sampled_from([0, -0.0, 1, 1.5, 2, 3, -4, 1e300])
STEPS = st.one_of(
    *3 * [st.tuples(st.just("put"), st.tuples(st.integers(0, 5), SCORES))],
    st.tuples(st.just("lose"), st.sampled_from(["all", "ranks", "changes"])),
    st.tuples(
        st.just("query"), st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 4), st.integers(0, 3))
    ),
    st.tuples(st.just("wait"), st.none()),
)


class Model:
    """A board as a list of scores, sorted for each query."""

    def __init__(self, *, descending: bool) -> None:
        self.sign = -1 if descending else 1
        self.scores: dict[str, tuple[float, int]] = {}
        self.count = 0

    def put(self, uid: str, score: float) -> None:
        self.count += 1
        if uid not in self.scores or self.scores[uid][0] != score:
            self.scores[uid] = score, self.count

    def ranked(self) -> list[tuple[int, str, float]]:
        best = sorted(self.scores, key=lambda uid: (self.sign * self.scores[uid][0], self.scores[uid][1]))
        return [(1 + index, uid, self.scores[uid][0]) for index, uid in enumerate(best)]


async def run(boards: Boards, users: Sequence[str], order: str, steps: Sequence[tuple[str, Any]]) -> None:
    boards = Boards.like(boards)
    await boards.configure(order=order)
    model = Model(descending=order == "DESC")
    for action, value in [*steps, ("query", (0, 1, 9, 3))]:
        match action:
            case "put":
                model.put(users[value[0]], value[1])
                await boards.put(users[value[0]], value[1])
            case "lose":
                await lose(boards, value)
            case "wait" if model.scores:
                await boards.read(users[0])
                await boards.indexed()
            case "query":
                await compare(boards, users, model, value)


async def compare(boards: Boards, users: Sequence[str], model: Model, value: tuple[int, int, int, int]) -> None:
    who, first, more, around = value
    found = await boards.read(users[who], **{"from": first, "to": first + more, "around": around})
    ranked = model.ranked()
    own = next((rank for rank, uid, _ in ranked if uid == users[who]), 0)
    near = ranked[max(0, own - 1 - around) : own + around] if own and around else []
    assert found["self_rank"] == own
    assert triples(found["rank_data"]) == ranked[first - 1 : first + more]
    assert triples(found["around_data"]) == near


def triples(entries: Sequence[dict[str, Any]]) -> list[tuple[int, str, float]]:
    return [(entry["rank"], entry["member"], entry["score"]) for entry in entries]


async def run_histories(boards: Boards, *, count: int) -> None:
    """Run random histories. Hypothesis blocks a thread of its own."""
    await boards.without_limits()
    users = await boards.users(7)
    loop = asyncio.get_running_loop()

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(["DESC", "ASC"]), st.lists(STEPS, min_size=5, max_size=25))
    def check(order: str, steps: list[tuple[str, Any]]) -> None:
        asyncio.run_coroutine_threadsafe(run(boards, users, order, steps), loop).result()

    await asyncio.to_thread(check)


async def test_ranks_equal_those_of_a_sorted_list_in_random_histories(boards: Boards) -> None:
    await run_histories(boards, count=25)


@pytest.mark.soak
async def test_ranks_equal_those_of_a_sorted_list_in_many_histories(boards: Boards) -> None:
    await run_histories(boards, count=1000)
