"""A server whose master key is wrong or lost does not serve, and one whose key was replaced does."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from app.environment import SettingsError
from app.services import open_services
from app.settings import Settings
from storage.accounts.identities import Details, Identity, store_details
from storage.configs.master_key import FEW_OUTSIDE_OF_CONFIGS
from storage.jobs.jobs import enqueue
from storage.mail.mail import MailContent, SendMail
from storage.operators import operators
from storage.operators.audit import COMMAND
from storage.operators.console_sessions import authenticator
from storage.operators.operators import Role
from storage.postgres.database import Connection
from storage.secrets import Keyring
from streams.wire.errors import StoreError
from tests.app.commands.ended import ended
from tests.deploy.serving import server_env
from tests.running.forks import run
from tests.running.read_only import read_only
from tests.running.servers import MASTER_KEY, Server, listening_socket, running_server

OTHER = secrets.token_hex(32)
WRONG = "PARLEY_MASTER_KEY is not the key that has encrypted the secrets of this database"
AUTH = ("default", "auth", "default")
SIGN_KEYS = {"sign_keys": [{"id": "client", "key": "a key of 32 characters " * 2}]}


@asynccontextmanager
async def started(settings: Settings, key: str) -> AsyncIterator[Server]:
    """Run another server of the same deployment, with `key` as its PARLEY_MASTER_KEY."""
    with listening_socket() as listener:
        port = listener.getsockname()[1]
        own = replace(settings, master_key=SecretStr(key), port=port, public_url=f"http://127.0.0.1:{port}")
        async with open_services(own) as services, running_server(services, listener) as server:
            yield server


async def ready(server: Server) -> tuple[int, dict[str, str]]:
    async with server.http.get(f"{server.url}/readyz") as response:
        return response.status, (await response.json())["causes"]


def secrets_reported(lines: list[Any]) -> list[tuple[str, str]]:
    return [(line["event"], line["log_level"]) for line in lines if line["event"].startswith("secrets.")]


async def refuse(settings: Settings, key: str) -> None:
    """Fail unless a server with `key` does not start."""
    with pytest.raises(SettingsError, match=WRONG):
        async with started(settings, key):
            pass


@pytest.mark.parametrize("command", ["serve", "worker", "config export /none"])
async def test_with_another_master_key_no_process_starts(server: Server, command: str) -> None:
    with listening_socket() as listener:
        free = replace(server.services.settings, port=listener.getsockname()[1])
    code, _, errors = await ended(free, {"PARLEY_MASTER_KEY": OTHER}, *command.split())
    assert (code, errors.count("\n")) == (2, 1), errors
    assert errors.startswith(f"parley: {WRONG}")
    assert OTHER not in errors


async def test_the_key_of_secrets_that_an_earlier_version_has_stored_is_required(server: Server) -> None:
    settings = server.services.settings
    await server.services.configs.put(*AUTH, SIGN_KEYS, author="ada", origin=COMMAND)
    conn = await asyncpg.connect(settings.database_url)
    try:
        await conn.execute("delete from master_key")
        await refuse(settings, OTHER)
        assert await conn.fetchval("select count(*) from master_key") == 0
        async with started(settings, MASTER_KEY):
            pass
        assert await conn.fetchval("select count(*) from master_key") == 1
    finally:
        await conn.close()


async def store_authenticator(conn: Connection, keyring: Keyring) -> None:
    operator, _ = await operators.add(conn, "ada", role=Role.VIEWER, expires_at=None, origin=COMMAND)
    await authenticator(conn, operator.operator_id, keyring=keyring)


async def store_token(conn: Connection, keyring: Keyring) -> None:
    identity = Identity("default", "device", "a device")
    details = Details(refresh_token="a token")
    await store_details(conn, identity, details=details, keyring=keyring, proven=True)


async def store_mail(conn: Connection, keyring: Keyring) -> None:
    content = MailContent(to="ada@example.com", subject="Hello", text="", accounts=["default"])
    await enqueue(conn, SendMail.seal("default", content, keyring=keyring))


@pytest.mark.parametrize("store", [store_authenticator, store_token, store_mail])
async def test_the_key_of_what_an_earlier_version_has_encrypted_outside_of_configs_is_required(
    server: Server, store: Callable[[Connection, Keyring], Awaitable[None]]
) -> None:
    settings = server.services.settings
    await server.login("a device")
    async with server.services.database.transaction() as conn:
        await conn.execute("update config_revisions set secrets = '{}'")
        await conn.execute("delete from master_key")
        await store(conn, server.services.keyring)
    await refuse(settings, OTHER)
    async with started(settings, f"{OTHER},{MASTER_KEY}"):
        pass


async def test_the_search_for_ciphertexts_reads_no_table_of_users_as_a_whole(settings: Settings) -> None:
    conn = await asyncpg.connect(settings.direct_url)
    await conn.execute("set enable_seqscan = off; set enable_sort = off")
    plan = "\n".join(row[0] for row in await conn.fetch(f"explain {FEW_OUTSIDE_OF_CONFIGS}"))
    await conn.close()
    assert "Index Scan Backward using identities_of_user on identities" in plan
    assert "Index Scan Backward using procrastinate_jobs_pkey on procrastinate_jobs" in plan


async def test_a_key_is_replaced_in_two_steps_and_each_server_is_ready(server: Server) -> None:
    settings = server.services.settings
    await server.services.configs.put(*AUTH, SIGN_KEYS, author="ada", origin=COMMAND)
    for keys in (f"{MASTER_KEY},{OTHER}", f"{OTHER},{MASTER_KEY}"):
        async with started(settings, keys) as node:
            assert await ready(node) == (200, {})
    await refuse(settings, MASTER_KEY)


async def test_an_import_with_a_key_that_no_server_has_as_its_first_is_refused(
    server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "default" / "auth" / "default.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("sign_keys: [{id: a, key: a key of 32 characters for a client}]")
    env = server_env(server.services.settings, PARLEY_MASTER_KEY=f"{OTHER},{MASTER_KEY}")
    code, _, errors = await run("app", "config", "import", str(tmp_path), env=env)
    assert (code, errors.startswith("parley: PARLEY_MASTER_KEY begins with a key with which no running")) == (
        2,
        True,
    )
    assert await ready(server) == (200, {})
    async with started(server.services.settings, MASTER_KEY):
        pass
    async with started(server.services.settings, f"{OTHER},{MASTER_KEY}"):
        code, _, errors = await run("app", "config", "import", str(tmp_path), env=env)
    assert (code, errors) == (0, "")


@pytest.mark.parametrize("stored", [True, False], ids=["replaced key", "first start"])
async def test_a_server_starts_while_the_database_is_read_only_and_a_later_start_stores_the_key(
    server: Server, stored: bool
) -> None:
    settings, keys = server.services.settings, f"{OTHER},{MASTER_KEY}"
    if not stored:
        async with server.services.database.connection() as conn:
            await conn.execute("delete from master_key")
    async with read_only(settings.database_url):
        with capture_logs() as lines:
            async with started(settings, keys) as node:
                assert await ready(node) == (503, {"postgres": "the database is read-only"})
        (line,) = [line for line in lines if line["event"] == "master_key.not_stored"]
        assert (line["log_level"], line["cause"]) == ("warning", "the database is read-only")
        if stored:
            await refuse(settings, secrets.token_hex(32))
    async with started(settings, keys):
        pass
    await refuse(settings, MASTER_KEY)


async def test_a_server_that_may_not_store_the_key_does_not_start(server: Server) -> None:
    async with server.services.database.connection() as conn:
        await conn.execute("alter table master_key add check (encrypted = '') not valid")
    with pytest.raises(StoreError):
        async with started(server.services.settings, f"{OTHER},{MASTER_KEY}"):
            pass


async def test_a_server_without_the_key_of_some_configs_is_not_ready(server: Server) -> None:
    settings = server.services.settings
    await server.services.configs.put(*AUTH, SIGN_KEYS, author="ada", origin=COMMAND)
    async with started(settings, f"{OTHER},{MASTER_KEY}"):
        pass
    async with started(settings, OTHER) as node:
        status, causes = await ready(node)
        assert status == 503
        assert causes["secrets"].startswith("PARLEY_MASTER_KEY lacks the key of ")
        body = {"device": {"id": "a device"}}
        async with node.http.post(f"{node.url}/bp/user/login", json=body) as response:
            error = (await response.json())["error"]
        assert (response.status, error["error_type"]) == (422, "config_invalid")
        assert "master" not in error["message"].lower()


async def test_after_the_key_was_lost_a_new_one_is_accepted_and_secrets_are_written_again(server: Server) -> None:
    settings, configs = server.services.settings, server.services.configs
    await configs.put(*AUTH, SIGN_KEYS, author="ada", origin=COMMAND)
    code, out, _ = await ended(settings, {"PARLEY_MASTER_KEY": OTHER}, "keys", "--replace-lost")
    assert code == 0
    assert "write the secrets of default/auth/default again\n" in out
    with capture_logs() as lines:
        async with started(settings, OTHER) as node:
            assert (await ready(node))[0] == 503
            await node.services.configs.refresh()
            assert secrets_reported(lines) == [("secrets.unreadable", "error")]
            for key in node.services.configs.undecryptable():
                await node.services.configs.delete(key, author="ada", origin=COMMAND)
            assert await ready(node) == (200, {})
    assert secrets_reported(lines) == [("secrets.unreadable", "error"), ("secrets.readable", "info")]
    await refuse(settings, MASTER_KEY)
