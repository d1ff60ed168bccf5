"""Scores and ranks of boards over HTTP."""

from datetime import timedelta
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from streams.wire.codec import from_rfc3339
from tests.app.callers import ask, work_off
from tests.app.leaderboards.boards import QUERY, UPLOAD, Boards
from tests.running.servers import ADMIN_TOKEN

DAILY = {"reset": {"every": "day", "at": "04:00", "time_zone": "Europe/Berlin"}}


async def test_best_users_come_first_with_what_they_sent(boards: Boards) -> None:
    await boards.configure(order="DESC", size=100)
    one, two, three = await boards.users(3)
    await boards.put(one, 10, extra={"name": "Zoë", "z": 10**30, "a": [1.5, None]})
    await boards.put(two, 20.25)
    await boards.put(three, -3.5, extra={})
    for _ in range(2):  # From PostgreSQL, or from the index.
        found = await boards.read(one)
        assert found["rank_data"] == [
            {"member": two, "score": 20.25, "rank": 1},
            {"member": one, "score": 10.0, "rank": 2, "extra": {"name": "Zoë", "z": 10**30, "a": [1.5, None]}},
            {"member": three, "score": -3.5, "rank": 3, "extra": {}},
        ]
        assert list(found["rank_data"][1]["extra"]) == ["name", "z", "a"]
        assert (found["self_rank"], found["around_data"]) == (2, [])
        assert (found["name"], found["order"]) == (boards.name, "DESC")
        await boards.indexed()
    await boards.configure(order="ASC", size=100)
    assert await boards.ranked(one) == [three, one, two]
    await boards.indexed()
    assert await boards.ranked(one) == [three, one, two]


async def test_score_replaces_the_earlier_one_and_is_not_added(boards: Boards) -> None:
    await boards.configure()
    one, two = await boards.users(2)
    await boards.put(one, 10, extra={"level": 1})
    await boards.put(two, 9)
    assert await boards.ranked(one) == [one, two]
    await boards.indexed()
    await boards.put(one, 8)
    assert [entry["score"] for entry in (await boards.read(two))["rank_data"]] == [9.0, 8.0]
    assert await boards.ranked(one) == [two, one]
    assert "extra" not in (await boards.read(one))["rank_data"][1]


async def test_what_was_sent_with_an_equal_score_is_that_of_the_last_upload(boards: Boards) -> None:
    await boards.configure()
    one, two = await boards.users(2)
    await boards.put(one, 7)
    await boards.put(two, 7)
    await boards.read(one)
    await boards.indexed()
    for extra in ({"car": "red"}, {"car": "blue"}, None, {}):
        await boards.put(one, 7, extra=extra)
        entry, other = (await boards.read(two, around=1))["rank_data"]
        assert (entry["member"], entry.get("extra"), "extra" in entry) == (one, extra, extra is not None)
        assert (other["member"], "extra" in other) == (two, False)


async def test_rank_of_scores_without_extras_is_read_from_the_index_alone(boards: Boards) -> None:
    await boards.configure()
    one, two = await boards.users(2)
    await boards.put(one, 7)
    await boards.put(two, 6, extra={"car": "red"})
    await boards.read(one)
    await boards.indexed()
    await boards.fetch("alter table leaderboard_scores rename to away")
    try:
        found = await boards.read(one, to=1)
        status, _ = await boards.query(one, to=2)
    finally:
        await boards.fetch("alter table away rename to leaderboard_scores")
    assert ([entry["member"] for entry in found["rank_data"]], found["self_rank"]) == ([one], 1)
    assert status == 500


@pytest.mark.parametrize("order", ["DESC", "ASC"])
async def test_of_equal_scores_the_earlier_one_is_better(boards: Boards, order: str) -> None:
    await boards.configure(order=order)
    users = await boards.users(5)
    for uid in users:
        await boards.put(uid, 7)
    assert await boards.ranked(users[0]) == users
    await boards.indexed()
    assert await boards.ranked(users[0]) == users
    await boards.put(users[0], 7, extra={"again": True})  # The same score keeps its time.
    assert await boards.ranked(users[0]) == users
    await boards.put(users[0], 8)
    await boards.put(users[0], 7)  # Another score in between does not.
    assert await boards.ranked(users[0]) == [*users[1:], users[0]]
    assert (await boards.read(users[0]))["self_rank"] == 5


async def test_users_around_the_caller(boards: Boards) -> None:
    await boards.configure(size=4)
    users = await boards.users(6)
    for index, uid in enumerate(users):
        await boards.put(uid, -index)
    stranger = await boards.user()
    for _ in range(2):
        for uid, around, expected in [
            (users[2], 1, (1, 4)),
            (users[0], 2, (0, 3)),
            (users[5], 2, (3, 6)),
            (users[5], 100, (0, 6)),
            (users[3], 0, (0, 0)),
            (users[3], None, (0, 0)),
            (stranger, 5, (0, 0)),
        ]:
            found = await boards.read(uid, around=around, to=2)
            near = [(entry["rank"], entry["member"]) for entry in found["around_data"]]
            assert near == [(1 + index, users[index]) for index in range(*expected)]
            assert [entry["member"] for entry in found["rank_data"]] == users[:2]
        # The size of the board does not bound the caller's rank.
        assert (await boards.read(users[5], to=1))["self_rank"] == 6
        assert (await boards.read(stranger, to=1))["self_rank"] == 0
        assert await boards.ranked(users[0], **{"from": 3, "to": 4}) == users[2:4]
        await boards.indexed()


async def test_reply_has_the_period_and_its_times(boards: Boards) -> None:
    await boards.configure(**DAILY, order="ASC")
    await boards.move_to("2031-03-05T08:00:00Z")
    one = await boards.user()
    posted = await boards.put(one, 5)
    assert posted.pop("post_time").startswith("2031-03-05T08:00:")
    elapsed = posted.pop("elapsed_seconds")
    assert 5 * 3600 <= elapsed < 5 * 3600 + 60
    assert posted == {"name": boards.name, "period": "2031-03-05T03:00:00Z", "order": "ASC", "status": "ok"}
    found = await boards.read(one)
    assert found["period"] == "2031-03-05T03:00:00Z"
    assert found["request_time"].startswith("2031-03-05T08:00:")
    assert elapsed <= found["elapsed_seconds"] < 5 * 3600 + 60
    await boards.move_to("2031-03-06T02:59:00Z")
    assert (await boards.read(one))["period"] == "2031-03-05T03:00:00Z"
    await boards.move_to("2031-03-06T03:00:00Z")
    found = await boards.read(one)
    assert (found["period"], found["rank_data"], found["self_rank"]) == ("2031-03-06T03:00:00Z", [], 0)
    await boards.put(one, 5)
    assert (await boards.read(one))["self_rank"] == 1
    assert [row["board"] for row in await boards.fetch("select board from leaderboard_periods")] == [
        boards.name
    ] * 2


async def test_board_without_a_reset_has_the_period_of_its_creation(boards: Boards) -> None:
    before = await boards.now()
    await boards.configure()
    one = await boards.user()
    posted = await boards.put(one, 5)
    created = from_rfc3339(posted["period"])
    assert before - timedelta(seconds=1) < created < from_rfc3339(posted["post_time"])
    await boards.configure(size=7)  # A change is no creation.
    assert (await boards.put(one, 6))["period"] == posted["period"]
    assert (await boards.read(one, to=7))["period"] == posted["period"]


@pytest.mark.parametrize(
    "score",
    [0, -0.0, 1, 0.1 + 0.2, -1e-300, 5e-324, 1.7976931348623157e308, 2**53, 2**63, 1e22, 123456789.123456789],
)
async def test_scores_are_returned_as_they_were_sent(boards: Boards, score: float) -> None:
    await boards.configure()
    one = await boards.user()
    await boards.put(one, score)
    for _ in range(2):
        found = (await boards.read(one))["rank_data"][0]["score"]
        assert found == float(score)
        assert str(found) != "-0.0"
        await boards.indexed()


async def test_server_acts_for_a_user(boards: Boards) -> None:
    await boards.configure()
    one, two = await boards.users(2)
    body = {"name": boards.name, "data": {"score": 3, "extra": {"by": "server"}}}
    status, reply = await boards.s2s(one, "/leaderboard/data", body)
    assert (status, reply["leaderboard"][0]["status"]) == (200, "ok")
    await boards.put(two, 4)
    status, reply = await boards.s2s(one, "/leaderboard", {"name": boards.name, "from": 1, "to": 1})
    assert (status, reply["leaderboard"]["self_rank"]) == (200, 2)
    assert [entry["member"] for entry in reply["leaderboard"]["rank_data"]] == [two]
    body |= {"from": 1, "to": 1}
    for path in ("/leaderboard/data", "/leaderboard"):
        status, reply = await boards.s2s("nobody", path, body)
        assert (status, reply["error"]["error_type"]) == (404, "item_not_found")
        status, reply = await boards.s2s(one, path, body, scope="mail")
        assert (status, reply["error"]["error_type"]) == (403, "permission_denied")


GOOD = {"name": "{board}", "from": 1, "to": 10}
WRONG_QUERIES: list[tuple[dict[str, Any], int, str]] = [
    ({"name": None}, 400, "invalid_parameter: name must be a string"),
    ({"from": 0}, 400, "invalid_parameter: from must be at least 1"),
    ({"from": "1"}, 400, "invalid_parameter: from must be an integer"),
    ({"from": 1.5}, 400, "invalid_parameter: from must be an integer"),
    ({"to": 0}, 400, "invalid_parameter: to must be at least 1"),
    ({"from": 5, "to": 4}, 400, "invalid_parameter: to must be at least from"),
    ({"to": 5001}, 400, "invalid_parameter: to must be at most 5000, the size of the board"),
    ({"from": 2**63, "to": 2**63}, 400, "invalid_parameter: from must be at most 10000000"),
    ({"from": 2**80, "to": 2**80}, 400, "invalid_parameter: from must be an integer"),
    ({"from": 1, "to": 1002}, 400, "invalid_parameter: to must be at most 1000 after from"),
    ({"around": -1}, 400, "invalid_parameter: around must be at least 0"),
    ({"around": 101}, 400, "invalid_parameter: around must be at most 100"),
    ({"name": "no such board"}, 422, "config_invalid: leaderboards no such board does not exist"),
    ({"name": "x" * 500}, 422, f"config_invalid: leaderboards {'x' * 64} does not exist"),
    ({"name": "a\nb"}, 422, "config_invalid: leaderboards a b does not exist"),
]


async def test_wrong_queries(boards: Boards) -> None:
    await boards.configure(size=5000)
    one = await boards.user()
    for change, status, message in WRONG_QUERIES:
        found, reply = await boards.query(one, **{"to": 10, **change})
        assert (found, reply["error"]["message"]) == (status, message)
    for missing in GOOD:
        body = {name: value for name, value in GOOD.items() if name != missing}
        status, reply = await boards.s2s(one, "/leaderboard", body)
        assert (status, reply["error"]["message"]) == (400, f"invalid_parameter: {missing} is required")
    assert (await boards.query(one, **{"from": 1000, "to": 2000}))[0] == 200
    assert (await boards.query(one, **{"from": 4000, "to": 5000}))[0] == 200


LARGE = {"text": "x" * (4096 - len('{"text":""}'))}
WRONG_UPLOADS: list[tuple[str, str]] = [
    ('{"score": "1"}', "data.score must be a number"),
    ('{"score": null}', "data.score must be a number"),
    ('{"score": true}', "data.score must be a number"),
    ("{}", "data.score is required"),
    ('{"score": 1, "extra": 5}', "data.extra must be an object"),
    ('{"score": 1, "extra": [1]}', "data.extra must be an object"),
    ('{"score": 1, "extra": {"text": "' + "x" * 4090 + '"}}', "data.extra must be at most 4096 bytes of JSON"),
    ("5", "data must be an object"),
]


async def test_wrong_uploads(boards: Boards) -> None:
    await boards.configure()
    one = await boards.user()
    for data, message in WRONG_UPLOADS:
        body = f'{{"name": "{boards.name}", "data": {data}}}'
        status, reply = await ask(boards.server, "POST", UPLOAD, data=body, headers=boards.sessions[one])
        assert (status, reply["error"]["message"]) == (400, f"invalid_parameter: {message}"), data
    for number in ("NaN", "Infinity", "-Infinity", "1e400", "-1e999"):
        body = f'{{"name": "{boards.name}", "data": {{"score": {number}}}}}'
        status, reply = await ask(boards.server, "POST", UPLOAD, data=body, headers=boards.sessions[one])
        assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter"), number
    await boards.put(one, 1, extra=LARGE)
    assert (await boards.read(one))["rank_data"][0]["extra"] == LARGE
    status, reply = await boards.upload(one, 1, name="unknown")
    assert (status, reply["error"]["error_type"]) == (422, "config_invalid")
    for path in (UPLOAD, QUERY):
        status, reply = await ask(boards.server, "POST", path, json={})
        assert (status, reply["error"]["error_type"]) == (400, "account.invalid_session")


async def test_uploads_are_limited_per_user_and_board(boards: Boards) -> None:
    await boards.configure()
    await boards.configure("another")
    rates = {"board_upload": {"count": 2, "per_s": 60}}
    await boards.server.services.configs.put(
        "default", "limits", "default", {"rates": rates}, author="test", origin=COMMAND
    )
    one, two = await boards.users(2)
    for uid in (one, two):
        for _ in range(2):
            await boards.put(uid, 1)
        status, reply = await boards.upload(uid, 1)
        assert (status, reply["error"]["error_type"]) == (429, "api_rate_limit")
        await boards.put(uid, 1, name="another")


async def test_broken_config_is_named(boards: Boards) -> None:
    for value, message in [
        ({"order": "UP"}, "order must be one of 'DESC' or 'ASC'"),
        ({"reset": {"every": "day", "at": "4:00"}}, "reset.at must be a time such as 04:00"),
        ({"reset": {"every": "week", "weekday": 8}}, "reset.weekday must be at most 7"),
        ({"reset": {"every": "day", "time_zone": "../etc/passwd"}}, "reset.time_zone must be a time zone"),
        ({"reset": {"every": "day", "time_zone": "Europe/Nowhere"}}, "reset.time_zone must be a time zone"),
        ({"reset": {"every": "day", "time_zone": ""}}, "reset.time_zone must be a time zone"),
        ({"rewards": [{"from": 1, "to": 2, "product": "coins_100"}]}, "rewards are only for boards that are reset"),
        (
            {
                "reset": {"every": "day"},
                "rewards": [{"from": 1, "to": 2, "product": "a"}, {"from": 2, "to": 3, "product": "b"}],
            },
            "rewards: rank 2 has two rewards",
        ),
    ]:
        with pytest.raises(Exception, match=message.replace("(", r"\(")):
            await boards.configure(**value)


async def test_export_of_a_user_has_the_scores(boards: Boards) -> None:
    await boards.configure(**DAILY)
    one = await boards.user()
    posted = await boards.put(one, 7.5, extra={"car": "red"})
    path = f"/admin/api/users/default/{one}/export"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "asked"}
    assert (await ask(boards.server, "POST", path, headers=headers))[0] == 200
    await work_off(boards.server.services)
    _, link = await ask(boards.server, "POST", f"{path}/link", headers=headers)
    async with boards.server.http.get(link["url"]) as response:
        [score] = (await response.json())["leaderboard_scores"]
    assert (score["board"], score["score"], score["extra"]) == (boards.name, 7.5, {"car": "red"})
    assert from_rfc3339(score["starts_at"]) == from_rfc3339(posted["period"])


async def test_erased_user_leaves_the_board(boards: Boards) -> None:
    await boards.configure()
    one, two, three = users = await boards.users(3)
    for index, uid in enumerate(users):
        await boards.put(uid, 10 - index, extra={"n": index})
    await boards.read(three)
    await boards.indexed()
    await boards.deactivate(two)
    assert [entry["member"] for entry in (await boards.read(three))["rank_data"]] == [one, three]
    await work_off(boards.server.services)
    found = await boards.read(three)
    assert [(entry["member"], entry["rank"]) for entry in found["rank_data"]] == [(one, 1), (three, 2)]
    assert found["self_rank"] == 2
    await boards.server.services.valkey.client.delete(*await boards.keys())
    assert await boards.ranked(three) == [one, three]
    await boards.indexed()
    assert await boards.ranked(three) == [one, three]
