"""Rate limits, and the address that they count by."""

import asyncio
import random

import pytest
from aiohttp.test_utils import make_mocked_request

from app.http.callers.addresses import network_of, peer_ip
from app.http.callers.limits import Limit
from app.http.callers.tokens import make_server_token
from app.services import Services
from storage.configs.kinds.limits import Rate
from storage.limits import LocalLimiter, RateLimiter
from storage.operators.audit import COMMAND
from storage.valkey.opening import open_valkey
from streams.wire.errors import RateLimited
from tests.app.valkey_proxy import valkey_proxy_to
from tests.running.servers import SERVER_KEY, Server
from tests.waiting import until


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def services(server: Server) -> Services:
    return server.services


async def check(
    limiter: RateLimiter, rate: Rate, *, app_id: str = "default", name: str = "n", who: str = "u"
) -> None:
    """Count a call. Raises `RateLimited` if it is not allowed."""
    (await limiter.count(rate, app_id=app_id, name=name, who=who)).check()


async def allowed(limiter: RateLimiter, rate: Rate, *, who: str = "u", calls: int) -> int:
    """Return how many of `calls` consecutive calls are allowed."""
    requested = (check(limiter, rate, who=who) for _ in range(calls))
    answers = await asyncio.gather(*requested, return_exceptions=True)
    assert all(answer is None or isinstance(answer, RateLimited) for answer in answers)
    return answers.count(None)


@pytest.mark.parametrize("rate", [Rate(count=1, per_s=60), Rate(count=7, per_s=60), Rate(count=30, per_s=3600)])
async def test_a_burst_of_the_whole_rate_is_allowed_and_no_more(services, rate):
    assert await allowed(services.limiter, rate, calls=rate.count + 20) == rate.count


async def pass_by(services: Services, wait_s: float) -> None:
    """Wait until `wait_s` have passed by the clock of Valkey. A timer of the loop may fire a millisecond early."""

    async def now_s() -> float:
        seconds, microseconds = await services.valkey.client.time()
        return seconds + microseconds / 1e6

    async def is_past() -> bool:
        return await now_s() >= end_s

    end_s = await now_s() + wait_s
    await asyncio.sleep(wait_s)
    await until(is_past, every_s=0.001)


async def test_the_reported_wait_is_long_enough(services):
    rate = Rate(count=4, per_s=2)
    assert await allowed(services.limiter, rate, calls=5) == 4
    with pytest.raises(RateLimited) as refused:
        await check(services.limiter, rate)
    wait_s = refused.value.retry_after_s
    assert wait_s is not None
    assert 0 < wait_s <= 0.5
    await pass_by(services, wait_s)
    assert await allowed(services.limiter, rate, calls=1) == 1


async def test_callers_apps_and_rates_are_counted_separately(services):
    rate = Rate(count=1, per_s=60)
    for app_id, name, who in (("a", "n", "u"), ("b", "n", "u"), ("a", "m", "u"), ("a", "n", "v")):
        await check(services.limiter, rate, app_id=app_id, name=name, who=who)
    assert await allowed(services.limiter, rate, calls=1) == 1


async def test_a_count_of_zero_calls_reports_whether_a_call_would_be_allowed(services):
    rate, local = Rate(count=2, per_s=3600), LocalLimiter()
    requested = {"app_id": "default", "name": "n", "who": "u"}
    for counted in range(2):
        for _ in range(3):
            found = await services.limiter.count(rate, **requested, calls=0)
            assert (found.wait_s, found.used) == (0, pytest.approx(counted, abs=0.1))
        await check(services.limiter, rate)
    assert (await services.limiter.count(rate, **requested, calls=0)).wait_s > 0

    assert [local.wait_s(rate, "k", calls=0) for _ in range(3)] == [0, 0, 0]
    assert local.wait_s(rate, "k") == 0
    assert local.wait_s(rate, "k", calls=0) > 0


async def test_a_counter_is_deleted_once_it_is_empty(services):
    await check(services.limiter, Rate(count=10, per_s=100), app_id="a", name="n", who="u")
    key = services.valkey.key("a:u", "rate", "n")
    assert 9_000 < await services.valkey.client.pttl(key) <= 10_001


async def test_without_valkey_the_process_allows_half_of_the_rate(services, stores, tmp_path):
    rate = Rate(count=10, per_s=60)
    async with (
        valkey_proxy_to(stores.redis_url, tmp_path / "v.sock") as valkey_proxy,
        open_valkey(valkey_proxy.url, prefix=services.settings.redis_prefix) as valkey,
    ):
        limiter = RateLimiter(valkey)
        assert await allowed(limiter, rate, calls=4) == 4
        await valkey_proxy.stop()
        assert await allowed(limiter, rate, calls=20) == 5
        await valkey_proxy.start()
        assert await allowed(limiter, rate, calls=20) == 6


async def test_raising_a_rate_does_not_refuse_the_next_call(services):
    assert await allowed(services.limiter, Rate(count=1, per_s=3600), calls=2) == 1
    assert await allowed(services.limiter, Rate(count=3, per_s=600), calls=5) == 2
    assert await allowed(services.limiter, Rate(count=3, per_s=300), calls=5) == 1


async def test_lowering_a_rate_allows_at_most_its_burst_and_refuses_for_no_longer_than_the_new_rate(services):
    limiter, low = services.limiter, Rate(count=2, per_s=1)
    assert await allowed(limiter, Rate(count=100, per_s=10), calls=100) == 100
    with pytest.raises(RateLimited) as refused:
        await check(limiter, low)
    wait_s = refused.value.retry_after_s
    assert wait_s is not None
    assert 0 < wait_s <= 0.501
    await pass_by(services, wait_s)
    assert await allowed(limiter, low, calls=1) == 1
    assert await allowed(limiter, Rate(count=2, per_s=3600), calls=9) == 0


@pytest.mark.parametrize("seed", range(20))
async def test_calls_while_the_rate_changes_are_allowed_as_in_an_exact_count(services, seed: int):
    rng = random.Random(seed)  # noqa: S311 - to be the same every time
    used, interval_s = 0, 0.0
    for _ in range(40):
        # So slow that none of the calls is forgotten while the test lasts.
        rate = Rate(count=rng.randint(1, 6), per_s=rng.choice([80_000, 400_000, 3_000_000]))
        raised = interval_s > rate.per_s / rate.count
        interval_s = rate.per_s / rate.count
        for call in range(rng.randint(1, 4)):
            if used < rate.count or (raised and call == 0):
                await check(services.limiter, rate)
                used = min(used + 1, rate.count)
                continue
            used = min(used, rate.count)
            with pytest.raises(RateLimited) as refused:
                await check(services.limiter, rate)
            assert refused.value.retry_after_s is not None
            assert refused.value.retry_after_s <= interval_s + 0.001


async def test_an_app_server_is_counted_by_its_key(server):
    await server.services.configs.put(
        "default",
        "limits",
        "default",
        {"rates": {"server": {"count": 2, "per_s": 120}}},
        author="tests",
        origin=COMMAND,
    )
    uid, _ = await server.login()
    answers = [await s2s_user(server, uid) for _ in range(3)]
    assert [status for status, _ in answers] == [200, 200, 429]
    assert 0 < int(answers[2][1]) <= 60
    await server.login()


async def test_responses_have_the_remaining_calls_of_the_counted_rates(server):
    rates = {"server": {"count": 2, "per_s": 120}, "signup": {"count": 4, "per_s": 3600}}
    await server.services.configs.put(
        "default", "limits", "default", {"rates": rates}, author="tests", origin=COMMAND
    )

    async def of(method: str, path: str, **options) -> tuple[int, str | None, str | None]:
        async with server.http.request(method, server.url + path, **options) as response:
            return response.status, response.headers.get("RateLimit-Policy"), response.headers.get("RateLimit")

    uid, token = await server.login()
    device = {"platform": "device", "device": {"id": "one"}}
    assert await of("POST", "/bp/user/login", json=device) == (200, '"signup";q=4;w=3600', '"signup";r=2;t=1800')
    assert await of("POST", "/bp/user/login", json=device) == (200, None, None), (
        "the user exists: nothing is counted"
    )
    assert await of("GET", "/bp/user/me", headers={"X-Service-Session-Token": token}) == (200, None, None)
    key = {
        "X-Service-Auth-Token": make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    }
    calls = [await of("GET", f"/bp/server/user/{uid}", headers=key) for _ in range(3)]
    assert calls == [
        (200, '"server";q=2;w=120', '"server";r=1;t=60'),
        (200, '"server";q=2;w=120', '"server";r=0;t=120'),
        (429, '"server";q=2;w=120', '"server";r=0;t=120'),
    ]


async def test_responses_to_calls_that_are_refused_before_they_are_counted_have_the_remaining_calls_too(server):
    rates = {"server": {"count": 2, "per_s": 120}, "detect": {"count": 4, "per_s": 3600}}
    await server.services.configs.put(
        "default", "limits", "default", {"rates": rates}, author="tests", origin=COMMAND
    )
    key = {
        "X-Service-Auth-Token": make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    }
    of_server, of_detect = ('"server";q=2;w=120', '"server";r=2;t=0'), ('"detect";q=4;w=3600', '"detect";r=4;t=0')
    wrong, unknown = {"data": b"{", "headers": key}, f"/bp/server/user/{'0' * 32}"
    for method, path, options, expected in (
        ("GET", unknown, {"headers": key}, (404, *of_server)),
        ("POST", "/bp/server/user/detect", wrong, (400, *of_server)),
        ("POST", "/bp/user/detect", {"data": b"{"}, (400, *of_detect)),
        ("POST", "/bp/user/detect", {"json": {}}, (400, *of_detect)),
        ("GET", unknown, {}, (401, None, None)),
    ):
        for _ in range(2):
            async with server.http.request(method, server.url + path, **options) as response:
                found = (response.headers.get("RateLimit-Policy"), response.headers.get("RateLimit"))
                assert (response.status, *found) == expected, path


async def test_an_app_server_without_a_user_is_counted_by_its_key_only(server):
    rates = {"server": {"count": 3, "per_s": 120}, "detect": {"count": 1, "per_s": 3600}}
    await server.services.configs.put(
        "default", "limits", "default", {"rates": rates}, author="tests", origin=COMMAND
    )
    await server.services.configs.put(
        "default", "email", "default", {"enabled": True}, author="tests", origin=COMMAND
    )
    key = {
        "X-Service-Auth-Token": make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    }

    async def detect(path: str, headers: dict[str, str]) -> int:
        body = {"email": "ada@example.com"}
        async with server.http.post(f"{server.url}{path}", json=body, headers=headers) as response:
            return response.status

    assert [await detect("/bp/server/user/detect", key) for _ in range(4)] == [200, 200, 200, 429]
    assert [await detect("/bp/user/detect", {}) for _ in range(2)] == [200, 429]


def test_a_limit_cannot_name_a_rate_that_does_not_exist():
    with pytest.raises(ValueError, match=r"limit must be one of .*server, .*signup"):
        Limit("singup")


async def s2s_user(server, uid: str) -> tuple[int, str]:
    token = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    headers = {"X-Service-Auth-Token": token}
    async with server.http.get(f"{server.url}/bp/server/user/{uid}", headers=headers) as response:
        return response.status, response.headers.get("Retry-After", "")


@pytest.mark.parametrize(
    ("remote", "trusted", "forwarded", "peer"),
    [
        ("198.51.100.7", (), [], "198.51.100.7"),
        ("198.51.100.7", (), ["203.0.113.1"], "198.51.100.7"),
        ("198.51.100.7", ("10.0.0.0/8",), ["203.0.113.1"], "198.51.100.7"),
        ("10.0.0.1", ("10.0.0.0/8",), [], "10.0.0.1"),
        ("10.0.0.1", ("10.0.0.0/8",), ["203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ("10.0.0.0/8",), ["1.1.1.1, 203.0.113.1, 10.0.0.2"], "203.0.113.1"),
        ("10.0.0.1", ("10.0.0.0/8",), ["1.1.1.1", "203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ("10.0.0.0/8",), ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ("10.0.0.0/8",), ["203.0.113.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ("10.0.0.0/8",), [""], "10.0.0.1"),
        ("::ffff:10.0.0.1", ("10.0.0.0/8",), ["::ffff:203.0.113.1"], "203.0.113.1"),
        ("::1", ("::1/128",), ["2001:db8::5"], "2001:db8::5"),
        ("fe80::1%eth0", (), [], "fe80::1"),
        ("", (), ["203.0.113.1"], ""),
    ],
)
def test_the_peer_is_found_from_right_to_left(remote, trusted, forwarded, peer):
    request = make_mocked_request("GET", "/", headers=[("X-Forwarded-For", line) for line in forwarded])
    assert peer_ip(request.clone(remote=remote), trusted) == peer


def test_ipv6_callers_are_counted_by_their_64_bit_network():
    assert network_of("2001:db8:1:2:3:4:5:6") == "2001:db8:1:2::/64"
    assert network_of("198.51.100.7") == "198.51.100.7"
    assert network_of("") == ""


async def test_a_refused_sign_up_says_how_many_remain_and_is_not_counted(server):
    rates = {"signup": {"count": 4, "per_s": 3600}}
    await server.services.configs.put(
        "default", "limits", "default", {"rates": rates}, author="tests", origin=COMMAND
    )
    body = {"name_password": {"name": "ada", "password": "password"}}
    for _ in range(2):
        async with server.http.post(f"{server.url}/bp/user/signup", json=body) as response:
            found = response.status, response.headers["RateLimit-Policy"], response.headers["RateLimit"]
        assert found == (400, '"signup";q=4;w=3600', '"signup";r=4;t=0')


async def test_ten_addresses_a_minute_are_detected(server):
    async with server.http.post(f"{server.url}/bp/user/detect", json={"email": "ada@example.com"}) as response:
        assert response.headers["RateLimit-Policy"] == '"detect";q=10;w=60'
