"""`python -m app doctor` tells whether URLs lead to PostgreSQL itself, to a pooler, or to a replica."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.app.doctor.doctor import BROKEN, DOUBTFUL, GOOD, Doctor, point
from tests.running.poolers import NEEDS_PGBOUNCER, Pooler, address_of, running_pgbouncer
from tests.running.servers import Databases, Server, Stores, new_server

pytestmark = NEEDS_PGBOUNCER


@pytest.fixture(scope="module")
async def module_server(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path_factory.mktemp("data"), seeded=False) as running:
        yield running


@pytest.fixture(scope="module")
def pooler(stores: Stores) -> Iterator[Pooler]:
    with running_pgbouncer(address_of(stores.database_url)) as running:
        yield running


@pytest.fixture
def doctor(module_server: Server) -> Doctor:
    return Doctor(module_server)


@pytest.fixture
def direct(module_server: Server) -> str:
    return module_server.services.settings.direct_url


async def test_a_pooler_with_a_direct_url_is_good(doctor: Doctor, pooler: Pooler, direct: str) -> None:
    findings = await doctor.examine("postgres", "database", **pooler.settings(direct))
    assert point(findings, "pooler").seen == (
        "a pooler in transaction mode; DATABASE_DIRECT_URL leads to PostgreSQL itself"
    )
    assert point(findings, "connection").state is point(findings, "migrations").state is GOOD


@pytest.mark.parametrize(
    ("mode", "seen"), [("transaction", "a pooler in transaction mode"), ("session", "a pooler")]
)
async def test_a_pooler_without_a_direct_url_is_broken(
    mode: str, seen: str, doctor: Doctor, stores: Stores, direct: str
) -> None:
    with running_pgbouncer(address_of(stores.database_url), pool_mode=mode) as pooler:
        urls = {"database_url": pooler.url(direct), "database_direct_url": None}
        found = point(await doctor.examine("postgres", **urls), "pooler")
    assert found.state is BROKEN
    assert found.seen == f"DATABASE_URL leads to {seen}, and DATABASE_DIRECT_URL is not set"
    assert found.fix == "set DATABASE_DIRECT_URL to the URL of PostgreSQL itself"


async def test_a_direct_url_that_leads_elsewhere_is_named(
    doctor: Doctor, pooler: Pooler, direct: str, stores: Stores
) -> None:
    pooled = pooler.url(direct)
    for wrong, state, seen in [
        (pooled, BROKEN, "DATABASE_DIRECT_URL leads to a pooler in transaction mode"),
        (stores.database_url, BROKEN, "DATABASE_DIRECT_URL leads to postgres since "),
        ("postgresql://127.0.0.1:1/parley", BROKEN, "(DATABASE_DIRECT_URL: 127.0.0.1:1, database parley)"),
    ]:
        findings = await doctor.examine("postgres", database_url=pooled, database_direct_url=wrong)
        found = point(findings, "pooler")
        assert (found.state, seen in found.seen) == (state, True), found
    findings = await doctor.examine("postgres", database_url=direct, database_direct_url=direct)
    found = point(findings, "pooler")
    assert (found.state, found.fix.startswith("unset DATABASE_DIRECT_URL")) == (DOUBTFUL, True)


async def test_a_replica_that_cannot_be_used_is_named(doctor: Doctor, direct: str) -> None:
    for wrong, seen in [
        (direct, "DATABASE_REPLICA_URL leads to a server that is no replica"),
        ("postgresql://127.0.0.1:1/parley", "(DATABASE_REPLICA_URL: 127.0.0.1:1, database parley)"),
    ]:
        found = point(await doctor.examine("postgres", database_replica_url=wrong), "replica")
        assert (found.state, seen in found.seen) == (DOUBTFUL, True), found
