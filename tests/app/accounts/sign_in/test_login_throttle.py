"""Failed logins are limited, but nobody can use the limits to lock a person out (§4.1)."""

import asyncio
import re
import time
from dataclasses import dataclass, field
from itertools import count

import pytest

from app.http.callers.tokens import make_server_token
from storage.accounts import identities
from storage.accounts.identities import Identity
from storage.operators.audit import COMMAND
from tests.app.valkey_proxy import valkey_proxy_to
from tests.password_hashes import usual_hashes
from tests.running.servers import SERVER_KEY, Server, new_server

PASSWORD, WRONG = "correct horse battery", "staple gun at dawn"
HOME, ELSEWHERE = "198.51.100.7", "203.0.113.9"
NAMES = (f"user-{number}" for number in count())
WIDE = {"signup": {"count": 100_000, "per_s": 1}}


@dataclass
class ProxiedServer:
    """A server behind a proxy, which reports the addresses of callers."""

    server: Server
    taken: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    async def limit(self, **rates: int) -> None:
        """Set the number of calls per hour of some rates; the others have their defaults."""
        given = {"rates": WIDE | {name: {"count": calls, "per_s": 3600} for name, calls in rates.items()}}
        await self.server.services.configs.put(
            "default", "limits", "default", given, author="tests", origin=COMMAND
        )

    async def post(self, path, name, password, address, **headers) -> tuple[int, dict]:
        return await self.send(path, {"name_password": {"name": name, "password": password}}, address, **headers)

    async def send(self, path, body, address, **headers) -> tuple[int, dict]:
        headers["X-Forwarded-For"] = address
        async with self.server.http.post(f"{self.server.url}{path}", json=body, headers=headers) as response:
            self.headers = dict(response.headers)
            return response.status, await response.json()

    async def uid_of(self, platform, social_id) -> str:
        async with self.server.services.database.connection() as conn:
            return await identities.user_of(conn, Identity("default", platform, social_id))

    async def link(self, uid, **social_ids) -> None:
        """Give a user further identities, by platform."""
        now = self.server.services.clock.now("default")
        async with self.server.services.database.transaction() as conn:
            for platform, social_id in social_ids.items():
                identity = Identity("default", platform, social_id)
                assert await identities.link(conn, identity, uid=uid, now=now, proven=True) == "linked"

    async def new_user(self, *, address=HOME) -> str:
        """Sign up, and return the user's name."""
        name = next(NAMES)
        assert (await self.post("/bp/user/signup", name, PASSWORD, address))[0] == 200
        return name

    async def login(self, name, password=PASSWORD, *, address=HOME) -> int:
        return (await self.post("/bp/user/login", name, password, address))[0]

    async def fail(self, name, times: int, *, address=HOME) -> list[int]:
        return [await self.login(name, WRONG, address=address) for _ in range(times)]


@pytest.fixture(scope="module")
async def testbed(databases, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    async with new_server(databases, folder, trusted_proxies=("127.0.0.0/8",)) as server:
        yield server


@pytest.fixture
async def slow_hashes(databases, tmp_path):
    """A server that takes its time for hashes, so that callers wait for each other."""
    with usual_hashes():
        async with new_server(databases, tmp_path, trusted_proxies=("127.0.0.0/8",)) as server:
            yield ProxiedServer(server)


@pytest.fixture
async def proxied(testbed: Server) -> ProxiedServer:
    opened = ProxiedServer(testbed)
    await opened.limit()
    email = {"mail_accounts": ["inbox"], "code_login": True}
    await testbed.services.configs.put("default", "email", "default", email, author="tests", origin=COMMAND)
    # The counts of addresses are those of the test alone.
    client, prefix = testbed.services.valkey.client, testbed.services.settings.redis_prefix
    if keys := [key async for key in client.scan_iter(f"{prefix}*rate*", count=10_000)]:
        await client.delete(*keys)
    return opened


async def test_ten_failures_refuse_the_network_and_no_other(proxied: ProxiedServer):
    name = await proxied.new_user()
    began_s = time.monotonic()
    assert await proxied.fail(name, 11) == [400] * 10 + [429]
    assert 89 - (time.monotonic() - began_s) <= int(proxied.headers["Retry-After"]) <= 90
    assert '"login_network";q=10;w=900' in proxied.headers["RateLimit-Policy"]
    assert '"login_network";r=0' in proxied.headers["RateLimit"]
    assert await proxied.login(name) == 429
    assert await proxied.login(name, address="198.51.100.200") == 429
    assert await proxied.login(name, address="198.51.101.7") == 200
    assert await proxied.login(await proxied.new_user()) == 200


async def test_an_ipv6_network_is_a_64(proxied: ProxiedServer):
    name = await proxied.new_user()
    assert await proxied.fail(name, 10, address="2001:db8::1") == [400] * 10
    assert await proxied.login(name, address="2001:db8::ffff:2") == 429
    assert await proxied.login(name, address="2001:db8:0:1::1") == 200


async def test_right_passwords_are_not_counted(proxied: ProxiedServer):
    name = await proxied.new_user()
    assert [await proxied.login(name) for _ in range(15)] == [200] * 15
    assert '"login_network";r=10' in proxied.headers["RateLimit"]
    assert await proxied.fail(name, 11) == [400] * 10 + [429]


@pytest.mark.parametrize("guesses", [60, pytest.param(500, marks=pytest.mark.soak)])
async def test_many_concurrent_guesses_get_no_more_answers_than_the_limit(proxied: ProxiedServer, guesses: int):
    """The right password among them is tried only if it is one of the first."""
    name = await proxied.new_user()
    passwords = [*(f"{WRONG} {number}" for number in range(guesses)), PASSWORD]
    statuses = await asyncio.gather(*(proxied.login(name, password) for password in passwords))
    assert set(statuses) <= {400, 429, 503}
    assert statuses.count(400) == 10
    assert await proxied.login(name) == 429


async def test_concurrent_right_passwords_all_log_in(slow_hashes: ProxiedServer):
    name = await slow_hashes.new_user()
    assert await asyncio.gather(*(slow_hashes.login(name) for _ in range(30))) == [200] * 30
    assert await slow_hashes.fail(name, 11) == [400] * 10 + [429]


async def test_an_account_has_one_count_for_all_its_names(proxied: ProxiedServer):
    email = f"Ada.{next(NAMES)}@example.com"
    body = {"email_password": {"email": email, "password": PASSWORD}}
    assert (await proxied.send("/bp/user/signup", body, HOME))[0] == 200
    uid = await proxied.uid_of("email", email.lower())
    name, number = next(NAMES), "+4915112345678"
    await proxied.link(uid, name_password=name, phone=number)
    domain = email.partition("@")[0] + "@EXAMPLE.com"
    tried = [
        *({"email_password": {"email": written, "password": WRONG}} for written in (email, email.upper(), domain)),
        *({"name_password": {"name": written, "password": WRONG}} for written in (name, name.upper())),
        {"phone": {"phone_number": number, "verify_code": "123456"}},
        {"phone": {"phone_number": "+49 (1511) 2345-678", "verify_code": "123456"}},
        {"email_code": {"email": email, "verify_code": "123456"}},
    ]
    statuses = [(await proxied.send("/bp/user/login", body, HOME))[0] for body in tried]
    assert statuses == [400] * 8
    assert await proxied.fail(name, 3) == [400] * 2 + [429]
    assert (await proxied.send("/bp/user/login", tried[-1], HOME))[0] == 429


async def test_the_failures_of_an_address_are_limited_over_all_accounts(proxied: ProxiedServer):
    await proxied.limit(login_address=4)
    names = [await proxied.new_user() for _ in range(5)]
    assert [await proxied.login(name, WRONG, address=ELSEWHERE) for name in names] == [400] * 4 + [429]
    assert await proxied.login(names[0], address="203.0.113.10") == 200


async def test_nobody_can_lock_a_person_out(proxied: ProxiedServer):
    """While many networks guess at an account, it stays open for those from which its user has logged in."""
    await proxied.limit(login_account=6)
    name = await proxied.new_user()
    guesses = [await proxied.login(name, WRONG, address=f"203.0.{number}.1") for number in range(8)]
    assert guesses == [400] * 6 + [429] * 2
    assert await proxied.login(name, address="198.51.100.99") == 200
    assert await proxied.login(name, WRONG) == 400
    assert await proxied.login(name) == 200
    assert await proxied.login(name, address=ELSEWHERE) == 429


async def test_unknown_names_are_limited_as_known_ones(proxied: ProxiedServer):
    await proxied.limit(login_account=6)
    known, unknown = await proxied.new_user(), next(NAMES)
    for address in ("203.0.113.1", *(f"203.0.{number}.1" for number in range(8))):
        answers = [await proxied.post("/bp/user/login", name, WRONG, address) for name in (known, unknown)]
        assert answers[0] == answers[1]


async def test_a_server_is_limited_by_account_because_all_its_users_share_its_address(proxied: ProxiedServer):
    await proxied.limit(login_account=3, login_network=1, login_address=1)
    name = await proxied.new_user()
    token = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    headers = {"X-Service-Auth-Token": token}
    path = "/bp/server/user/login"
    assert (await proxied.post(path, name, PASSWORD, HOME, **headers))[0] == 200
    guesses = [(await proxied.post(path, name, WRONG, HOME, **headers))[0] for _ in range(4)]
    assert guesses == [400] * 3 + [429]


async def test_guesses_of_clients_do_not_lock_a_user_out_of_the_server_of_the_app(proxied: ProxiedServer):
    await proxied.limit(login_account=3)
    name = await proxied.new_user()
    guesses = [await proxied.login(name, WRONG, address=f"203.0.{number}.1") for number in range(4)]
    assert guesses == [400] * 3 + [429]
    token = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    headers = {"X-Service-Auth-Token": token}
    for password, status in ((PASSWORD, 200), (WRONG, 400), (PASSWORD, 200)):
        assert (await proxied.post("/bp/server/user/login", name, password, HOME, **headers))[0] == status


async def test_guesses_at_the_current_password_are_limited(proxied: ProxiedServer):
    await proxied.limit(login_network=3)
    name = await proxied.new_user()
    _, reply = await proxied.post("/bp/user/login", name, PASSWORD, HOME)
    headers = {
        "X-Service-Session-Token": reply["user"]["session"]["session_token"],
        "X-Forwarded-For": HOME,
    }
    body, statuses = {"origin_password": WRONG, "password": "another one at noon"}, []
    for _ in range(4):
        async with proxied.server.http.put(
            f"{proxied.server.url}/bp/user/me/password", json=body, headers=headers
        ) as response:
            statuses.append(response.status)
    assert statuses == [400] * 3 + [429]


async def test_too_many_logins_at_once_are_refused_and_not_counted(slow_hashes: ProxiedServer):
    await slow_hashes.limit(login_network=1_000, login_address=1_000, login_account=1_000)
    name = await slow_hashes.new_user()
    replies = await asyncio.gather(*(slow_hashes.post("/bp/user/login", name, PASSWORD, HOME) for _ in range(120)))
    assert {status for status, _ in replies} == {200, 503}
    assert {reply["error"]["error_type"] for status, reply in replies if status == 503} == {"backend unavailable"}
    assert await slow_hashes.login(name) == 200
    assert '"login_network";r=1000' in slow_hashes.headers["RateLimit"]


async def test_without_valkey_each_process_allows_half(databases, stores, tmp_path):
    async with (
        valkey_proxy_to(stores.redis_url, tmp_path / "v.sock") as proxy,
        new_server(databases, tmp_path / "data", redis_url=proxy.url, trusted_proxies=("127.0.0.0/8",)) as server,
    ):
        proxied = ProxiedServer(server)
        await proxied.limit()
        name = await proxied.new_user()
        await proxy.stop()
        assert await proxied.fail(name, 6) == [400] * 5 + [429]
        assert await proxied.login(name, address=ELSEWHERE) == 200


@pytest.mark.usefixtures("unused_line_rate")
async def test_no_password_is_in_a_log_line_an_error_or_a_row(proxied: ProxiedServer, capfd):
    name, secret = next(NAMES), "Zq7 unspoken word"
    replies = [
        await proxied.post("/bp/user/signup", "x", secret, HOME),
        await proxied.post("/bp/user/signup", name, secret, HOME),
        await proxied.post("/bp/user/signup", name, secret, HOME),
        await proxied.post("/bp/user/signup", next(NAMES), [secret], HOME),
        await proxied.post("/bp/user/signup", next(NAMES), secret * 20, HOME),
        await proxied.post("/bp/user/login", next(NAMES), secret, HOME),
        await proxied.post("/bp/user/login", name, {secret: secret}, HOME),
        await proxied.post("/bp/user/login", name, f"not {secret}", HOME),
    ]
    assert [status for status, _ in replies] == [400, 200, 400, 400, 400, 400, 400, 400]
    async with proxied.server.services.database.connection() as conn:
        rows = [
            str([tuple(row) for row in await conn.fetch(statement)])
            for statement in ("table passwords", "table login_failures", "table users", "table identities")
        ]
    lines, more = capfd.readouterr()
    assert len(re.findall(r"(?m)\] request +app_id", lines)) == len(replies)
    assert secret not in "\n".join([*map(str, replies), *rows, lines, more])
