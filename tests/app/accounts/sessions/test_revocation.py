"""Sessions that end in one process are refused by the others within a second."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from storage.tokens import digest
from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    new_address,
    open_mailbox,
    refusal,
    session_of,
)
from tests.app.accounts.people import SOCIAL, ask, bind, enter, new_user, player
from tests.app.valkey_proxy import ValkeyProxy, postgresql_proxy_to, valkey_proxy_to
from tests.running.another_server import another_server
from tests.running.servers import Databases, Server, new_server
from tests.running.suspended import suspended
from tests.waiting import until

WITHIN_S = 1
Headers = dict[str, str]


@dataclass
class Processes:
    """Two processes of a deployment. `box` calls the first."""

    box: Mailbox
    second: Server

    async def me(self, session: Headers) -> tuple[int, Any]:
        """Read the user in the second process."""
        return await ask(self.second, "GET", "/bp/user/me", headers=session)

    async def signed_up(self) -> tuple[str, Headers, Headers]:
        """Sign up. Return the address, and two sessions."""
        address = new_address()
        first = session_of(await self.box.sign_up(address))
        return address, first, session_of(await self.box.login(address))


@pytest.fixture(scope="module")
async def testbed(databases, tmp_path_factory):
    async with (
        open_mailbox(databases, tmp_path_factory.mktemp("data")) as box,
        another_server(box.server.services.settings) as second,
    ):
        await box.configure(code_login=True, activation=True)
        await until(lambda: second.services.configs.version == box.server.services.configs.version)
        yield Processes(box, second)


@pytest.fixture
def processes(testbed: Processes) -> Processes:
    return testbed


Revoke = Callable[[], Awaitable[tuple[int, Any]]]


async def by_logout(processes: Processes) -> tuple[list[Headers], list[Headers], Revoke]:
    _, one, two = await processes.signed_up()
    return [one], [two], lambda: processes.box.post("logout", None, **one)


async def by_a_new_password(processes: Processes) -> tuple[list[Headers], list[Headers], Revoke]:
    _, one, two = await processes.signed_up()
    body = {"origin_password": PASSWORD, "password": NEW_PASSWORD}
    return [two], [one], lambda: processes.box.post("me/password", body, "PUT", **one)


async def by_a_reset(processes: Processes) -> tuple[list[Headers], list[Headers], Revoke]:
    address, one, two = await processes.signed_up()
    body = {"random_code": await processes.box.reset_code(address, nth=2), "password": NEW_PASSWORD}
    return [one, two], [], lambda: processes.box.post("email/reset_password", body)


async def by_the_list(processes: Processes) -> tuple[list[Headers], list[Headers], Revoke]:
    _, one, two = await processes.signed_up()
    _, listed = await processes.box.get("/bp/user/me/sessions", headers=one)
    [other] = [shown["session_id"] for shown in listed["sessions"] if not shown["current"]]
    return [two], [one], lambda: processes.box.post(f"me/sessions/{other}", None, "DELETE", **one)


async def by_unbinding(processes: Processes) -> tuple[list[Headers], list[Headers], Revoke]:
    server, address = processes.box.server, new_address()
    _, one = await new_user(server)
    given = {"email": address, "platform": "ios", "verify_code": await processes.box.code(address)}
    assert await processes.box.post("me/email", given, **one) == (200, None)
    identity = player()
    assert (await bind(server, one, identity))[0] == 200
    _, two = await enter(server, identity)
    path = f"{SOCIAL}/android_games_service/{identity['android_games_service']['player_id']}"
    return [two], [one], lambda: ask(server, "DELETE", path, headers=one)


@pytest.mark.parametrize(
    "prepare",
    [by_logout, by_a_new_password, by_a_reset, by_the_list, by_unbinding],
    ids=lambda change: change.__name__,
)
async def test_a_session_that_ends_in_one_process_is_refused_by_another(processes: Processes, prepare):
    ending, staying, revoke = await prepare(processes)
    for session in ending + staying:
        for _ in range(3):  # The third call finds the session in the process.
            assert (await processes.me(session))[0] == 200
    assert (await revoke())[0] == 200

    async def ended() -> bool:
        return all([(await processes.me(session))[0] != 200 for session in ending])

    await until(ended, within_s=WITHIN_S)
    for session in ending:
        assert refusal(await processes.me(session)) == (400, "account.invalid_session")
    assert [(await processes.me(session))[0] for session in staying] == [200] * len(staying)


async def test_of_20_resets_in_two_processes_one_wins(processes: Processes):
    address, _, _ = await processes.signed_up()
    code = await processes.box.reset_code(address, nth=2)
    bodies = [{"random_code": code, "password": f"{NEW_PASSWORD} {number}"} for number in range(20)]
    servers = (processes.box.server, processes.second)
    results = await asyncio.gather(
        *(
            ask(servers[number % 2], "POST", "/bp/user/email/reset_password", json=body)
            for number, body in enumerate(bodies)
        )
    )
    assert sorted(status for status, _ in results) == [200] + [400] * 19


async def test_of_20_logins_with_a_code_or_a_bp_auth_in_two_processes_one_wins(processes: Processes):
    address = new_address()
    body = {"email_code": {"email": address, "verify_code": await processes.box.code(address)}}
    reply, _ = await enter(processes.box.server, player())
    for proof in (body, {"bp_auth_token": reply["bp_auth"]["bp_auth_token"]}):
        servers = (processes.box.server, processes.second) * 10
        results = await asyncio.gather(*(ask(server, "POST", "/bp/user/login", json=proof) for server in servers))
        assert sorted(status for status, _ in results) == [200] + [400] * 19


async def test_concurrent_first_logins_in_two_processes_make_one_user(processes: Processes):
    servers = (processes.box.server, processes.second) * 100
    replies = await asyncio.gather(
        *(ask(server, "POST", "/bp/user/login", json={"device": {"id": "in two processes"}}) for server in servers)
    )
    assert {status for status, _ in replies} == {200}
    users = [reply["user"] for _, reply in replies]
    assert len({user["uid"] for user in users}) == 1
    assert [user["is_new_user"] for user in users].count(True) == 1
    async with processes.second.services.database.connection() as conn:
        live = "select count(*) from sessions where uid = $1 and revoke_time is null"
        assert await conn.fetchval(live, users[0]["uid"]) == 10


@dataclass
class CutOff:
    """Two processes: the first gets to Valkey, and the second to PostgreSQL, through a proxy."""

    first: Server
    second: Server
    valkey: ValkeyProxy
    postgresql: ValkeyProxy

    async def me(self, session: Headers) -> int:
        """Read the user in the second process."""
        return (await ask(self.second, "GET", "/bp/user/me", headers=session))[0]

    async def cached_session(self) -> Headers:
        """Return a session that the second process finds in the cache."""
        _, session = await new_user(self.second)
        assert [await self.me(session) for _ in range(2)] == [200, 200]
        return session

    async def log_out_without_valkey(self, session: Headers) -> None:
        """End a session in the first process, which cannot invalidate the cached copy."""
        await self.valkey.stop()
        assert (await ask(self.first, "POST", "/bp/user/logout", headers=session))[0] == 200

    async def until_refused(self, session: Headers) -> None:
        """Wait until the second process refuses a session, as it must within `WITHIN_S`."""

        async def refused() -> bool:
            return await self.me(session) == 400

        await until(refused, within_s=WITHIN_S)


@pytest.fixture
async def cut_off(databases: Databases, tmp_path: Path) -> AsyncIterator[CutOff]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        valkey = await enter(valkey_proxy_to(databases.stores.redis_url, tmp_path / "v.sock"))
        first = await enter(new_server(databases, tmp_path / "data", redis_url=valkey.url))
        settings = first.services.settings
        postgresql, url = await enter(postgresql_proxy_to(settings.direct_url))
        behind = replace(settings, database_url=url, database_direct_url=None, redis_url=databases.stores.redis_url)
        yield CutOff(first, await enter(another_server(behind)), valkey, postgresql)


async def test_what_ends_while_another_process_connects_to_postgresql_again_is_refused_by_it(cut_off: CutOff):
    session = await cut_off.cached_session()
    await cut_off.postgresql.stop()
    await cut_off.log_out_without_valkey(session)
    await cut_off.postgresql.start()
    await cut_off.until_refused(session)


@asynccontextmanager
async def silent_listeners(server: Server) -> AsyncIterator[None]:
    """Keep the connections that listen for notifications open, but let PostgreSQL send nothing to them."""
    async with server.services.database.connection() as conn:
        found = "select pid from pg_stat_activity where datname = current_database() and application_name = $1"
        pids = [row["pid"] for row in await conn.fetch(found, "parley notifications")]
    assert len(pids) == 2
    with suspended(*pids):
        yield


async def test_what_ends_while_another_process_hears_nothing_from_postgresql_is_refused_by_it(cut_off: CutOff):
    session = await cut_off.cached_session()
    async with silent_listeners(cut_off.first):
        await cut_off.log_out_without_valkey(session)
        await cut_off.until_refused(session)


async def test_a_cached_session_resumes_streams_while_postgresql_is_away(cut_off: CutOff):
    session, (_, other) = await cut_off.cached_session(), await new_user(cut_off.second)
    sessions, key = cut_off.second.services.sessions, digest(session["X-Service-Session-Token"])

    async def trusted() -> bool:
        cached = await sessions.get("default", key)
        return cached is not None and sessions.trusts(cached)

    async def trusted_when_read() -> bool:
        # What was cached before the process missed a check of its announcements is read again.
        return await cut_off.me(session) == 200 and await trusted()

    async def distrusted() -> bool:
        return not await trusted()

    await until(trusted_when_read)
    await cut_off.postgresql.stop()
    await until(distrusted)
    found = [
        (await ask(cut_off.second, "GET", "/bp/ai/stream/x", headers=headers))[0] for headers in (session, other)
    ]
    assert found == [404, 503]
