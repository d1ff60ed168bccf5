"""`python -m app doctor` reports each fault of the stores, configs and secrets of a deployment, and what to do."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from aiohttp import web
from pydantic import SecretStr

from app.stores import open_stores
from deploy.valkey_cluster import valkey_cluster
from storage.jobs import jobs
from storage.jobs.jobs import WorkWebhook
from storage.operators import operators
from storage.operators.audit import COMMAND
from storage.operators.operators import Role
from storage.postgres.database import open_database
from streams.wire.codec import loads
from tests.app.doctor.doctor import BROKEN, DOUBTFUL, GOOD, Doctor, bad_points, point
from tests.app.valkey_proxy import postgresql_proxy_to, valkey_proxy_to
from tests.calendar.clock import epoch_s
from tests.deploy.serving import server_env
from tests.running.forks import run
from tests.running.object_stores import new_bucket, s3_server
from tests.running.s3_proxy import code, s3_proxy
from tests.running.servers import ADMIN_TOKEN, MASTER_KEY, Databases, Server, new_server
from tests.running.small_disk import small_disk

_OF_TESTS = {"durability", "persistence"}
"""What the stores of the tests are not meant to be good at."""


@pytest.fixture(scope="module")
async def module_server(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path_factory.mktemp("data"), seeded=False) as running:
        await put(running, "apps", "default", {"title": "App"})
        yield running


@pytest.fixture
def doctor(module_server: Server) -> Doctor:
    return Doctor(module_server)


async def put(server: Server, kind: str, name: str, value: dict[str, Any], app_id: str = "default") -> None:
    await server.services.configs.put(app_id, kind, name, value, author="test", origin=COMMAND)


async def in_database(url: str, *statements: str) -> None:
    conn = await asyncpg.connect(url)
    try:
        for statement in statements:
            await conn.execute(statement)
    finally:
        await conn.close()


@asynccontextmanager
async def database_with(databases: Databases, setting: str) -> AsyncIterator[str]:
    """Yield the URL of a database with one setting, such as `fsync = off`."""
    async with databases.new() as url:
        await in_database(url, f"alter database {urlsplit(url).path[1:]} set {setting}")
        yield url


async def test_the_stores_of_a_deployment_are_good(doctor: Doctor) -> None:
    findings = await doctor.examine("postgres", "valkey", "machine", "objects")
    of_machine = {"backlog", "disk", "descriptors", "latency"}
    assert bad_points(findings) - of_machine == _OF_TESTS
    assert [finding.area for finding in findings if finding.point == "connection"] == ["postgres", "valkey"]
    assert point(findings, "rights").seen.endswith("write, read, list, delete")


async def test_stores_that_do_not_run_are_broken(doctor: Doctor) -> None:
    findings = await doctor.examine(
        *("postgres", "valkey", "database", "secrets", "vendors", "mail", "senders", "webhooks"),
        database_url="postgresql://127.0.0.1:1/parley",
        redis_url="redis://127.0.0.1:1",
    )
    broken = [finding for finding in findings if finding.state is BROKEN]
    assert [finding.area for finding in broken[:2]] == ["postgres", "valkey"]
    assert all("127.0.0.1:1" in finding.seen for finding in broken[:2])
    unchecked = ["database", "configs", "vendors", "mail", "senders", "webhooks"]
    assert [finding.area for finding in broken if finding.point == "not checked"] == unchecked
    assert all(finding.seen.startswith("database: ") for finding in broken[2:])


@pytest.mark.parametrize(
    ("setting", "name", "state"),
    [
        ("default_transaction_read_only = on", "writes", BROKEN),
        ("temp_file_limit = '64kB'", "temp_file_limit", BROKEN),
        ("log_temp_files = 0", "log_temp_files", DOUBTFUL),
        ("synchronous_commit = off", "durability", DOUBTFUL),
    ],
)
async def test_a_setting_of_postgresql_that_harms_is_named(
    setting: str, name: str, state: str, doctor: Doctor, databases: Databases
) -> None:
    async with database_with(databases, setting) as url:
        found = point(await doctor.examine("postgres", database_url=url), name)
    assert found.state is state
    assert setting.partition(" ")[0] in found.seen + found.fix


async def test_more_connections_than_postgresql_allows_are_doubtful(doctor: Doctor) -> None:
    found = point(await doctor.examine("postgres", processes=200), "connections")
    assert found.state is DOUBTFUL
    assert "raise max_connections" in found.fix


async def test_slow_stores_are_doubtful(doctor: Doctor, tmp_path: Path) -> None:
    settings = doctor.server.services.settings
    async with (
        valkey_proxy_to(settings.redis_url, tmp_path / "valkey") as valkey,
        postgresql_proxy_to(settings.database_url) as (postgres, slow_url),
    ):
        valkey.delay_s = postgres.delay_s = 0.05
        findings = await doctor.examine("postgres", "valkey", database_url=slow_url, redis_url=valkey.url)
    slow = {finding.area for finding in findings if finding.point == "latency" and finding.state is DOUBTFUL}
    assert slow == {"postgres", "valkey"}


async def test_clocks_that_differ_are_doubtful(doctor: Doctor) -> None:
    findings = await doctor.examine("postgres", "valkey", here={"clock": lambda: epoch_s() + 90})
    clocks = [finding for finding in findings if finding.point == "clock"]
    assert [finding.state for finding in clocks] == [DOUBTFUL, DOUBTFUL]
    assert all("behind the clock of this machine" in finding.seen for finding in clocks)


async def test_a_valkey_that_evicts_is_named(doctor: Doctor) -> None:
    client = doctor.server.services.valkey.client
    await client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        unlimited = point(await doctor.examine("valkey"), "eviction")
        await client.config_set("maxmemory", str(1 << 40))
        limited = point(await doctor.examine("valkey"), "eviction")
    finally:
        await client.config_set("maxmemory", "0")
        await client.config_set("maxmemory-policy", "noeviction")
    assert (unlimited.state, limited.state) == (DOUBTFUL, BROKEN)
    assert limited.fix == "set maxmemory-policy noeviction"
    assert point(await doctor.examine("valkey"), "eviction").state is GOOD


async def test_a_cluster_whose_primaries_have_no_replica_is_doubtful(doctor: Doctor, tmp_path: Path) -> None:
    async with valkey_cluster(tmp_path, primaries=2, replicas=False) as cluster:
        await cluster.ask(cluster.nodes[1], "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        findings = await doctor.examine("valkey", redis_url=cluster.url)
    assert point(findings, "connection").state is GOOD
    assert point(findings, "replicas").seen == "a primary has no replica"
    assert point(findings, "eviction").state is DOUBTFUL


@pytest.mark.one_valkey
async def test_a_user_of_valkey_without_rights_is_broken(doctor: Doctor) -> None:
    client, url = doctor.server.services.valkey.client, doctor.server.services.settings.redis_url
    await client.execute_command("ACL", "SETUSER", "narrow", "on", ">secret", "~other:*", "+@all")
    try:
        narrow = f"{url}?username=narrow&password=secret"
        found = point(await doctor.examine("valkey", redis_url=narrow), "writes")
    finally:
        await client.execute_command("ACL", "DELUSER", "narrow")
    assert found.state is BROKEN
    assert "PARLEY_REDIS_PREFIX" in found.fix


async def test_few_descriptors_are_broken_and_the_command_fails(doctor: Doctor) -> None:
    env = server_env(doctor.server.services.settings)
    process = await asyncio.create_subprocess_exec(
        *("prlimit", "--nofile=1024:1024", sys.executable, "-m", "app", "doctor", "--only", "machine"),
        env={**env, "PATH": "/usr/bin"},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 1
    assert "  broken    descriptors: 1024 open files per process" in out.decode()
    assert "fix: set LimitNOFILE=65536" in out.decode()


async def test_a_full_disk_is_broken(doctor: Doctor, tmp_path: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    async with small_disk(folder, "size=4m"):
        (folder / "file").write_bytes(bytes(4 * 1024 * 1024 - 8192))
        found = point(await doctor.examine("machine", data_dir=folder), "disk")
    assert found.state is BROKEN


async def test_migrations_that_are_missing_or_newer_are_broken(doctor: Doctor, databases: Databases) -> None:
    forget = "delete from schema_migrations where version = (select max(version) from schema_migrations)"
    async with databases.new() as url:
        assert point(await doctor.examine("database", database_url=url), "migrations").state is GOOD
        await in_database(url, forget)
        missing = point(await doctor.examine("database", database_url=url), "migrations")
        await in_database(url, "insert into schema_migrations values (9999, '9999_new.sql', '')")
        newer = point(await doctor.examine("database", database_url=url), "migrations")
    assert (missing.state, missing.fix) == (BROKEN, "run `python -m app migrate`")
    assert missing.seen.startswith("1 is not applied: 00")
    assert newer.state is BROKEN
    assert "9999_new.sql" in newer.seen


async def test_late_jobs_and_missing_operators_are_named(doctor: Doctor, databases: Databases) -> None:
    async with databases.new() as url:
        before = await doctor.examine("database", database_url=url)
        async with open_database(url, max_size=1) as database, database.connection() as conn:
            await jobs.enqueue(conn, WorkWebhook(app_id="default", webhook_id="a webhook"))
            await operators.add(conn, "ada", role=Role.ADMIN, expires_at=None, origin=COMMAND)
            await conn.execute("update procrastinate_jobs set scheduled_at = now() - interval '10 minutes'")
        after = await doctor.examine("database", database_url=url)
    assert (point(before, "jobs").state, point(before, "operators").state) == (GOOD, DOUBTFUL)
    assert (point(after, "jobs").state, point(after, "operators").state) == (BROKEN, GOOD)
    assert "python -m app worker" in point(after, "jobs").fix


async def test_secrets_that_do_not_fit_are_named(doctor: Doctor) -> None:
    await put(
        doctor.server, "auth", "default", {"sign_keys": [{"id": "client", "key": "a key of 32 characters " * 2}]}
    )
    good = await doctor.examine("secrets", admin_token=SecretStr("abcd" * 8))
    assert point(good, "PARLEY_ADMIN_TOKEN").state is DOUBTFUL
    assert not [finding for finding in good if finding.point == "default/auth/default"]
    other = await doctor.examine("secrets", master_key=SecretStr("00112233445566778899aabbccddeeff" * 2))
    assert point(other, "PARLEY_MASTER_KEY").state is BROKEN
    assert "docs/operating/secrets.md" in point(other, "PARLEY_MASTER_KEY").fix
    long = await doctor.examine("secrets", admin_token=SecretStr("0123456789abcdef" * 2))
    assert point(long, "PARLEY_ADMIN_TOKEN").state is GOOD


async def test_configs_that_one_of_two_keys_decrypts_are_checked_and_the_others_are_named(
    databases: Databases, tmp_path: Path
) -> None:
    new = MASTER_KEY[::-1]
    async with new_server(databases, tmp_path, seeded=False) as running:
        settings = running.services.settings
        account = {"platform": "openai", "base_url": "http://127.0.0.1:1", "api_key": "sk-a"}
        await put(running, "apps", "default", {"title": "App"})
        await put(running, "vendor_accounts", "old", account)
        async with open_stores(replace(settings, master_key=SecretStr(f"{new},{MASTER_KEY}"))) as replaced:
            await replaced.configs.put("default", "vendor_accounts", "new", account, author="test", origin=COMMAND)
        parts = "secrets", "vendors", "webhooks"
        findings = await Doctor(running).examine(*parts)
    key = point(findings, "PARLEY_MASTER_KEY")
    assert (key.state, key.seen) == (
        BROKEN,
        "it lacks the key that 1 configs need: default/vendor_accounts/new",
    )
    assert "used by default/vendor_accounts/old" in point(findings, "http://127.0.0.1:1").seen
    left_out = [finding for finding in findings if finding.point == "not checked"]
    assert [(finding.area, finding.seen) for finding in left_out] == [
        ("vendors", "default/vendor_accounts/new"),
        ("webhooks", "default/vendor_accounts/new"),
    ]


async def test_a_development_server_with_a_public_name_is_broken(doctor: Doctor) -> None:
    found = point(await doctor.examine("secrets", public_url="https://parley.example.com"), "PARLEY_ENV")
    assert (found.state, found.fix) == (BROKEN, "set PARLEY_ENV=production")


async def test_a_probable_mistake_in_a_config_is_doubtful(doctor: Doctor) -> None:
    await put(doctor.server, "apps", "default", {"title": "Second"}, app_id="second")
    await put(
        doctor.server, "conversation", "lost", {"chat": {"account": "missing", "model": "m"}}, app_id="second"
    )
    found = point(await doctor.examine("secrets"), "second/conversation/lost")
    assert found.state is DOUBTFUL
    assert "missing" in found.seen


async def test_a_folder_that_cannot_be_written_is_broken(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("a file in place of the folder")
    found = point(await doctor.examine("objects", data_dir=tmp_path), "connection")
    assert found.state is BROKEN
    assert "PARLEY_DATA_DIR" in found.fix


def without(right: str) -> Callable[[web.Request], web.Response | None]:
    """Return a function that refuses requests of one method, or deletions."""
    refused = code(403, "AccessDenied")

    def refuse(request: web.Request) -> web.Response | None:
        deletes = request.method == "DELETE" or (request.method == "POST" and "delete" in request.query)
        return refused(request) if request.method == right or (right == "DELETE" and deletes) else None

    return refuse


async def test_rights_that_a_bucket_lacks_are_named(doctor: Doctor) -> None:
    with s3_server() as url:
        async with new_bucket(url) as bucket:
            whole = await doctor.examine("objects", s3_bucket=bucket, s3_endpoint_url=url)
            lost = await doctor.examine("objects", s3_bucket="lost-bucket", s3_endpoint_url=url)
            async with s3_proxy(url, without("DELETE")) as narrow:
                kept = await doctor.examine("objects", s3_bucket=bucket, s3_endpoint_url=narrow.url)
            async with s3_proxy(url, without("PUT")) as narrow:
                unwritten = await doctor.examine("objects", s3_bucket=bucket, s3_endpoint_url=narrow.url)
    assert bad_points(whole) == set()
    assert {finding.state for finding in lost} == {BROKEN}
    assert "s3:DeleteObject" in point(kept, "delete").fix
    assert "s3:PutObject" in point(unwritten, "write").fix


async def test_the_report_is_printed_as_json_and_kept_for_the_console(guest: Server) -> None:
    server, settings = guest, guest.services.settings
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    url = f"{server.url}/admin/api/doctor"
    async with server.http.get(url, headers=headers) as answer:
        assert await answer.json() == {}
    code, out, errors = await run("app", "doctor", "--json", env=server_env(settings, PARLEY_PROCESSES="1"))
    report = loads(out.encode())
    broken = [finding for finding in report["findings"] if finding["state"] == "broken"]
    assert (code, errors) == (int(bool(broken)), "")
    assert {finding["area"] for finding in report["findings"]} >= {"postgres", "valkey", "objects", "proxy"}
    async with server.http.get(url, headers=headers) as answer:
        assert (await answer.json())["report"] == report


async def test_a_report_for_programs_has_no_other_lines(doctor: Doctor) -> None:
    await put(doctor.server, "vendor_accounts", "locked", {"platform": "openai", "api_key": "sk-a"})
    env = server_env(doctor.server.services.settings, PARLEY_MASTER_KEY=MASTER_KEY[::-1])
    code, out, errors = await run("app", "doctor", "--json", "--only", "vendors", env=env)
    (found,) = loads(out.encode())["findings"]
    assert (code, found["point"]) == (1, "not checked")
    assert "default/vendor_accounts/locked" in found["seen"]
    assert '"event":"config.broken"' in errors


async def test_a_strict_command_ends_with_3_if_something_is_doubtful(doctor: Doctor) -> None:
    env = server_env(doctor.server.services.settings, PARLEY_METRIC_PORT="9000")
    only = "--only", "secrets"
    code, out, _ = await run("app", "doctor", *only, env=env)
    strict, _, _ = await run("app", "doctor", *only, "--strict", env=env)
    assert (code, strict) == (0, 3)
    assert "PARLEY_METRIC_PORT: nothing reads it" in out
    assert "fix: correct its name: PARLEY_METRICS_PORT" in out


async def test_a_command_without_settings_says_which(doctor: Doctor) -> None:
    env = {name: text for name, text in server_env(doctor.server.services.settings).items() if name != "REDIS_URL"}
    code, _, errors = await run("app", "doctor", env=env)
    assert (code, errors) == (2, "parley: REDIS_URL is not set (`make run` sets it for you)\n")
