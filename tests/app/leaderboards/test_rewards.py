"""The ends of periods: each score is in one period, and each winner is rewarded once, whatever is interrupted."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator
from datetime import datetime, timedelta
from functools import partial
from itertools import count as count_from_zero
from typing import Any

import pytest

from app.leaderboards.rewards import end_period
from storage.jobs.jobs import enqueue
from storage.leaderboards.periods import EndPeriod, EndPeriods
from streams.tasks import background, pause, stopping
from streams.wire.codec import from_rfc3339, loads, rfc3339
from tests.app.callers import ask, token, work_off, working
from tests.app.leaderboards.boards import Boards
from tests.running.servers import ADMIN_TOKEN
from tests.waiting import until

REWARDS = [{"from": 1, "to": 2, "product": "coins_100"}, {"from": 3, "to": 3, "product": "coins_100"}]
HOURS = timedelta(hours=1)
ADMIN = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "a test"}


@pytest.fixture(autouse=True)
async def _real_time(boards: Boards) -> AsyncIterator[None]:
    yield
    await boards.server.services.clock.move("default", offset_s=0)


async def begin(boards: Boards, **config: Any) -> datetime:
    """Let a day of the board begin, in which the sessions of users are valid, and return its end."""
    now = await boards.now()
    at = (now - HOURS).replace(second=0, microsecond=0)
    await boards.configure(**{"reset": {"every": "day", "at": f"{at:%H:%M}"}, "rewards": REWARDS, **config})
    return at + timedelta(days=1)


async def end(boards: Boards) -> None:
    """Run the jobs of periods that are over."""
    async with boards.server.services.database.connection() as conn:
        await enqueue(conn, EndPeriods())
    await work_off(boards.server.services)


async def coins(boards: Boards, uid: str) -> int:
    status, reply = await ask(boards.server, "GET", f"/bp/server/user/{uid}/asset", headers=token(scope="assets"))
    assert status == 200, reply
    return sum(asset["quantity"] for asset in reply["assets"])


async def admin(boards: Boards, path: str = "", method: str = "GET", **options: Any) -> tuple[int, Any]:
    url = f"/admin/api/leaderboards/default/{boards.name}{path}"
    return await ask(boards.server, method, url, headers=ADMIN, **options)


async def test_winners_are_rewarded_once_and_the_board_is_locked_meanwhile(boards: Boards) -> None:
    ends_at = await begin(boards)
    users = await boards.users(5)
    for index, uid in enumerate(users):
        await boards.put(uid, 10 - index // 2)
    period = (await boards.read(users[0]))["period"]
    await boards.move_to(ends_at + timedelta(seconds=5))
    status, reply = await boards.upload(users[4], 99)
    assert (status, reply["error"]["error_type"]) == (400, "leaderboard.in_reward")
    assert (await boards.read(users[0]))["rank_data"] == []
    for _ in range(3):
        await end(boards)
        assert [await coins(boards, uid) for uid in users] == [100, 100, 100, 0, 0]
    status, found = await admin(boards, f"/{period}")
    assert status == 200
    assert (found["state"], found["scores"], found["rewards"], found["granted"]) == ("closed", 5, 3, 3)
    rewarded_at = from_rfc3339(found["rewarded_at"])
    await boards.move_to(rewarded_at + timedelta(minutes=9, seconds=30))
    assert (await boards.upload(users[4], 99))[0] == 400
    await boards.move_to(rewarded_at + timedelta(minutes=10))
    assert (await boards.put(users[4], 99))["period"] == rfc3339(ends_at)
    for _ in range(2):  # Nor does an operator grant them twice.
        assert await admin(boards, f"/{period}/rewards", "POST") == (200, {})
        await work_off(boards.server.services)
        assert [await coins(boards, uid) for uid in users] == [100, 100, 100, 0, 0]


async def test_lock_says_when_to_try_again(boards: Boards) -> None:
    ends_at = await begin(boards)
    one = await boards.user()
    await boards.put(one, 1)
    await boards.move_to(ends_at)
    body = {"name": boards.name, "data": {"score": 2}}
    headers = boards.sessions[one]

    async def retry_after() -> int | None:
        url = f"{boards.server.url}/bp/leaderboard/data"
        async with boards.server.http.post(url, json=body, headers=headers) as response:
            return int(response.headers["Retry-After"]) if response.status == 400 else None

    assert await retry_after() == 600
    await end(boards)
    left = await retry_after()
    assert left is not None
    assert 500 < left <= 600
    # If no worker has ended the period, the board is locked for an hour.
    await boards.fetch("update leaderboard_periods set state = 'open', closed_at = null, rewarded_at = null")
    await boards.move_to(ends_at + timedelta(minutes=59))
    left = await retry_after()
    assert left is not None
    assert 0 < left <= 60
    await boards.move_to(ends_at + timedelta(minutes=60))
    assert await retry_after() is None


async def test_board_without_rewards_is_never_locked(boards: Boards) -> None:
    ends_at = await begin(boards, rewards=[])
    one = await boards.user()
    first = (await boards.put(one, 1))["period"]
    await boards.move_to(ends_at)
    assert (await boards.put(one, 2))["period"] == rfc3339(ends_at)
    await end(boards)
    assert (await boards.put(one, 3))["period"] == rfc3339(ends_at)
    status, found = await admin(boards, f"/{first}")
    assert (status, found["state"], found["rewarded_at"]) == (200, "closed", "0001-01-01T00:00:00Z")
    assert "url" not in found


async def test_board_with_rewards_and_nobody_who_played_is_not_locked(boards: Boards) -> None:
    ends_at = await begin(boards)
    one = await boards.user()
    await boards.move_to(ends_at)
    await end(boards)
    await boards.put(one, 2)


async def test_past_periods_and_their_winners_are_kept(boards: Boards) -> None:
    ends_at = await begin(boards, order="ASC")
    users = await boards.users(4)
    for index, uid in enumerate(users):
        await boards.put(uid, index + 0.5, extra={"index": index})
    period = (await boards.read(users[0]))["period"]
    await boards.move_to(ends_at)
    await end(boards)
    await boards.configure(order="DESC")  # Later changes of the config do not change the past.
    status, found = await admin(boards, f"/{period}")
    assert (status, found["order"], found["ends_at"]) == (200, "ASC", rfc3339(ends_at))
    status, found_list = await admin(boards)
    assert (status, found_list) == (200, {"periods": [{name: found[name] for name in found_list["periods"][0]}]})
    status, ranks = await admin(boards, f"/{period}/ranks", params={"from": "2", "to": "3"})
    assert ranks["entries"] == [
        {"member": users[index], "score": index + 0.5, "extra": {"index": index}, "rank": index + 1}
        for index in (1, 2)
    ]
    async with boards.server.http.get(found["url"]) as response:
        assert (response.status, response.content_type) == (200, "application/json")
        written = loads(await response.read())
    assert written == {
        "app": "default", "name": boards.name, "period": period, "ends_at": rfc3339(ends_at), "order": "ASC",
        "closed_at": found["closed_at"],
        "rewards": [
            {"rank": index + 1, "member": users[index], "score": index + 0.5, "product": "coins_100"}
            for index in range(3)
        ],
    }  # fmt: skip
    async with boards.server.http.get(found["url"].replace("&s=", "&s=x")) as response:
        assert response.status == 404


async def test_errors_of_the_admin_api(boards: Boards) -> None:
    ends_at = await begin(boards)
    one = await boards.user()
    period = (await boards.put(one, 1))["period"]
    for path, method, expected in [
        ("/yesterday", "GET", (400, "invalid_parameter")),
        ("/2020-01-01T00:00:00Z", "GET", (404, "item_not_found")),
        ("/2020-01-01T00:00:00Z/ranks", "GET", (404, "item_not_found")),
        ("/2020-01-01T00:00:00Z/rewards", "POST", (404, "item_not_found")),
        (f"/{period}/rewards", "POST", (400, "invalid_operation")),
        (f"/{period}/ranks?from=2&to=1", "GET", (400, "invalid_parameter")),
        (f"/{period}/ranks?from=1&to=1002", "GET", (400, "invalid_parameter")),
        (f"/{period}/ranks?from=0", "GET", (400, "invalid_parameter")),
    ]:
        status, reply = await admin(boards, path, method)
        assert (status, reply["error"]["error_type"]) == expected, path
    for path in ("", f"/{period}", f"/{period}/ranks"):
        url = f"/admin/api/leaderboards/nowhere/{boards.name}{path}"
        assert (await ask(boards.server, "GET", url, headers=ADMIN))[0] == 404
        assert (await ask(boards.server, "GET", url))[0] == 401
    assert (await admin(boards, f"/{rfc3339(ends_at)}"))[0] == 404
    url = "/admin/api/leaderboards/default/nowhere"
    assert (await ask(boards.server, "GET", url, headers=ADMIN))[0] == 404


async def test_deactivated_user_wins_nothing(boards: Boards) -> None:
    ends_at = await begin(boards)
    one, two = await boards.users(2)
    await boards.put(one, 5)
    await boards.put(two, 4)
    await boards.deactivate(one)
    await boards.move_to(ends_at)
    await end(boards)
    winners = await boards.fetch("select uid, rank from leaderboard_rewards")
    assert [tuple(row) for row in winners] == [(two, 1)]


async def test_missing_product_delays_only_its_own_rewards(boards: Boards) -> None:
    rewards = [{"from": 1, "to": 1, "product": "gone"}, {"from": 2, "to": 2, "product": "coins_100"}]
    ends_at = await begin(boards, rewards=rewards)
    one, two = await boards.users(2)
    await boards.put(one, 5)
    await boards.put(two, 4)
    await boards.move_to(ends_at)
    await end(boards)
    assert [await coins(boards, uid) for uid in (one, two)] == [0, 100]
    assert (await boards.upload(one, 9))[0] == 400
    product = {"type": "consumable", "asset": "coins", "quantity": 7}
    await boards.put_config("products", "gone", product)
    for _ in range(2):
        await end(boards)
        assert [await coins(boards, uid) for uid in (one, two)] == [7, 100]


async def test_uploads_around_the_end_of_a_period_are_in_one_period_each(boards: Boards) -> None:
    ends_at = await begin(boards, rewards=[])
    users = await boards.users(10)
    await boards.move_to(ends_at - timedelta(seconds=3))
    posted: list[tuple[str, float, dict[str, Any]]] = []

    async def play(uid: str) -> None:
        for score in range(1, 100_000):
            found = await boards.put(uid, score)
            posted.append((uid, score, found))
            if from_rfc3339(found["post_time"]) > ends_at + timedelta(seconds=0.5):
                return

    async def end_again_and_again() -> None:
        while not stopping():
            async with boards.server.services.database.connection() as conn:
                await enqueue(conn, EndPeriods(), key=EndPeriods.task)
            await pause(0.02)

    await boards.without_limits()
    async with working(boards.server.services), background(end_again_and_again()):
        await asyncio.gather(*(play(uid) for uid in users))

        async def closed() -> bool:
            found = await boards.fetch("select 1 from leaderboard_periods where state = 'closed'")
            return bool(found)

        await until(closed)
    for _, _, found in posted:
        assert (found["period"] == rfc3339(ends_at)) == (from_rfc3339(found["post_time"]) >= ends_at)
    rows = await boards.fetch(
        "select starts_at, uid, score from leaderboard_scores join leaderboard_periods using (period_id)"
    )
    stored = {(rfc3339(row["starts_at"]), row["uid"]): row["score"] for row in rows}
    last = {(found["period"], uid): score for uid, score, found in posted}
    assert stored == last
    assert len({period for period, _ in last}) == 2


async def test_reward_job_that_is_stopped_at_any_statement_rewards_once(boards: Boards) -> None:
    """The job is cancelled at each point where it waits, in turn, and runs again."""
    ends_at = await begin(boards)
    users = await boards.users(4)
    for index, uid in enumerate(users):
        await boards.put(uid, 10 - index)
    await boards.move_to(ends_at)
    services = boards.server.services
    [row] = await boards.fetch("select period_id from leaderboard_periods")
    job = EndPeriod(app_id="default", period_id=row["period_id"])
    states, waits = set(), 0
    while True:
        done = await CancelledAt(end_period(services, job), waits)
        [row] = await boards.fetch("select state from leaderboard_periods")
        states.add(row["state"])
        assert {await coins(boards, uid) for uid in users} <= {0, 100}
        if done and row["state"] == "closed":
            break
        # Each point is reached twice: with what was left by the points before, and from the beginning.
        await boards.fetch("update leaderboard_periods set state = 'rewarding' where state = 'closed'")
        waits += 1
    assert states == {"open", "rewarding", "closed"}
    assert waits > 10
    assert [await coins(boards, uid) for uid in users] == [100, 100, 100, 0]


class CancelledAt:
    """Runs a coroutine, and cancels it when it has waited `waits` times. Returns whether it ended before that."""

    def __init__(self, work: Coroutine[Any, Any, None], waits: int) -> None:
        self.work = work
        self.waits = waits

    def __await__(self) -> Generator[Any, Any, bool]:
        running = self.work.__await__()
        step = partial(running.send, None)
        for count in count_from_zero():
            try:
                waited_for = step()
            except StopIteration:
                return True
            except asyncio.CancelledError:
                return False
            if count == self.waits and waited_for is not None:
                waited_for.cancel()
            try:
                yield waited_for
                step = partial(running.send, None)
            except asyncio.CancelledError as error:
                step = partial(running.throw, error)
        raise AssertionError
