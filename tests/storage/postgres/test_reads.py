"""Reads for operators: each statement gets a plan for the values of its filters."""

from collections.abc import AsyncIterator

import pytest

from storage.mail import engagement_lists
from storage.mail.engagement_lists import Filter
from storage.postgres.database import Database, open_database
from storage.postgres.reads import open_reads

_PLANS = """
select sum(generic_plans)::int, sum(custom_plans)::int from pg_prepared_statements
where statement ~ 'from mail[s]'
"""
_READS = 8
"""More than the five executions after which PostgreSQL may use a plan for any values."""


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url, max_size=1) as opened:
        yield opened


async def test_a_list_that_is_often_read_has_a_plan_for_the_values_of_its_filters(database: Database):
    async with open_reads(database, None) as reads:
        for _ in range(_READS):
            which = Filter("default", None, "refused")
            await reads.read(
                lambda conn, which=which: engagement_lists.mails(conn, which, before="0" * 32, size=20)
            )
        assert tuple(await reads.read(lambda conn: conn.fetchrow(_PLANS))) == (0, _READS)


async def test_other_statements_of_the_same_connection_keep_their_plans(database: Database):
    async with open_reads(database, None) as reads:
        assert await reads.read(lambda conn: conn.fetchval("show plan_cache_mode")) == "force_custom_plan"
        async with database.connection() as conn:
            assert await conn.fetchval("show plan_cache_mode") == "auto"
