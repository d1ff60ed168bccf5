"""Partitions of months are added ahead of time and dropped when all their rows have expired."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from storage.postgres.database import Database, open_database
from storage.postgres.partitions import ATTEMPTS, AUDIT, Partitioned, drop_expired, make_ahead, partitions
from streams.wire.codec import from_rfc3339
from streams.wire.errors import DatabaseError

STAMPS = replace(AUDIT, name="stamps", guard="comment on table {partition} is 'guarded'")
TICKETS = replace(ATTEMPTS, name="tickets")
_CREATE = """
create table stamps (changed_at timestamptz not null, note text not null check (note <> ''))
    partition by range (changed_at);
create table stamps_first partition of stamps for values from (minvalue) to ('2027-12-01T00:00:00Z');
create table stamps_default partition of stamps default;
create index stamps_by_note on stamps (note);
create table tickets (stream_id text primary key) partition by range (stream_id);
create table tickets_first partition of tickets for values from (minvalue) to ('{bound}');
create table tickets_default partition of tickets default;
create function refuse() returns trigger language plpgsql as $$ begin raise exception 'never deleted'; end $$;
create trigger stamps_stay before delete on stamps for each row execute function refuse();
"""


def at(text: str) -> datetime:
    return from_rfc3339(text)


@pytest.fixture
async def database(empty: str) -> AsyncIterator[Database]:
    async with open_database(empty) as opened:
        async with opened.connection() as conn:
            await conn.execute(_CREATE.format(bound=TICKETS.encode(at("2027-12-01T00:00:00Z"))))
        yield opened


async def names(database: Database, table: Partitioned) -> list[str]:
    async with database.connection() as conn:
        return [partition.name for partition in await partitions(conn, table)]


async def where(database: Database, table: str, column: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    async with database.connection() as conn:
        for row in await conn.fetch(f"select tableoid::regclass::text as name, {column} from {table} order by 2"):
            found.setdefault(row["name"], []).append(row[1])
    return found


async def add(database: Database, *times: str) -> None:
    async with database.connection() as conn:
        for time in times:
            await conn.execute("insert into stamps values ($1, $2)", at(time), time)
            digits = TICKETS.encode(at(time))
            await conn.execute("insert into tickets values ($1)", f"{digits}7000800000000000{time[8:10]}00")


@pytest.mark.parametrize("table", [STAMPS, TICKETS], ids=["by time", "by id"])
async def test_months_are_added_up_to_three_after_the_current_one(database, table):
    made = await make_ahead(database, table, now=at("2027-11-30T23:59:59Z"))
    assert made == [f"{table.name}_{month}" for month in ("2027_12", "2028_01", "2028_02")]
    assert await make_ahead(database, table, now=at("2027-11-30T23:59:59Z")) == []
    assert await make_ahead(database, table, now=at("2027-12-01T00:00:00Z")) == [f"{table.name}_2028_03"]
    # Nobody ran the job for a while: no month is left out.
    assert await make_ahead(database, table, now=at("2028-03-31T12:00:00Z")) == [
        f"{table.name}_{month}" for month in ("2028_04", "2028_05", "2028_06")
    ]
    assert (await names(database, table))[-1] == f"{table.name}_default"


async def test_rows_are_stored_in_the_partition_of_their_month(database):
    for table in (STAMPS, TICKETS):
        await make_ahead(database, table, now=at("2027-12-05T00:00:00Z"))
    times = (
        "2027-01-01T00:00:00Z", "2027-11-30T23:59:59Z", "2027-12-01T00:00:00Z", "2027-12-31T23:59:59Z",
        "2028-01-01T00:00:00Z", "2028-02-29T12:00:00Z", "2028-03-01T00:00:00Z", "2029-01-01T00:00:00Z",
    )  # fmt: skip
    await add(database, *times)
    assert await where(database, "stamps", "note") == {
        "stamps_first": [*times[:2]],
        "stamps_2027_12": [*times[2:4]],
        "stamps_2028_01": [times[4]],
        "stamps_2028_02": [times[5]],
        "stamps_2028_03": [times[6]],
        "stamps_default": [times[7]],
    }
    tickets = await where(database, "tickets", "stream_id")
    assert {name: len(ids) for name, ids in tickets.items()} == {
        "tickets_first": 2, "tickets_2027_12": 2, "tickets_2028_01": 1, "tickets_2028_02": 1, "tickets_2028_03": 1,
        "tickets_default": 1,
    }  # fmt: skip


async def test_rows_that_came_before_their_partition_are_moved_to_it(database):
    await add(database, "2027-12-31T23:59:59Z", "2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z")
    for table in (STAMPS, TICKETS):
        await make_ahead(database, table, now=at("2027-11-01T00:00:00Z"))
    assert await where(database, "stamps", "note") == {
        "stamps_2027_12": ["2027-12-31T23:59:59Z"],
        "stamps_2028_01": ["2028-01-01T00:00:00Z"],
        "stamps_default": ["2029-01-01T00:00:00Z"],
    }
    assert set(await where(database, "tickets", "stream_id")) == {
        "tickets_2027_12", "tickets_2028_01", "tickets_default",
    }  # fmt: skip


async def test_a_new_partition_has_the_indexes_checks_triggers_and_the_guard_of_its_table(database):
    await add(database, "2028-01-01T00:00:00Z")
    await make_ahead(database, STAMPS, now=at("2027-11-01T00:00:00Z"))
    async with database.connection() as conn:
        for table in ("stamps_2028_01", "stamps_default"):
            triggers = (
                "select tgenabled::text from pg_trigger where tgrelid = $1::text::regclass and not tgisinternal"
            )
            assert [row[0] for row in await conn.fetch(triggers, table)] == ["O"], table
            indexes = "select count(*) from pg_index where indrelid = $1::text::regclass"
            assert await conn.fetchval(indexes, table) == 1, table
        checks = "select count(*) from pg_constraint where conrelid = 'stamps_2028_01'::regclass and contype = 'c'"
        assert await conn.fetchval(checks) == 1
        assert await conn.fetchval("select obj_description('stamps_2028_01'::regclass)") == "guarded"


async def test_a_partition_is_dropped_once_all_its_rows_have_expired_and_no_other_one(database):
    now, kept = at("2028-04-30T00:00:00Z"), timedelta(days=60)  # Rows since 1 March are kept.
    await make_ahead(database, STAMPS, now=now)
    times = ("2027-06-01T00:00:00Z", "2027-12-24T00:00:00Z", "2028-02-29T23:59:59Z", "2028-03-01T00:00:00Z")
    await add(database, *times, "2031-01-01T00:00:00Z")
    assert await drop_expired(database, STAMPS, kept=kept, now=now - timedelta(seconds=1)) == [
        "stamps_2027_12", "stamps_2028_01", "stamps_first",
    ]  # fmt: skip
    assert list(await where(database, "stamps", "note")) == ["stamps_2028_02", "stamps_2028_03", "stamps_default"]
    assert await drop_expired(database, STAMPS, kept=kept, now=now) == ["stamps_2028_02"]
    assert await drop_expired(database, STAMPS, kept=kept, now=now) == []
    assert list(await where(database, "stamps", "note")) == ["stamps_2028_03", "stamps_default"]


async def test_a_partition_whose_removal_was_interrupted_is_dropped_later(database):
    now = at("2028-04-30T00:00:00Z")
    await make_ahead(database, STAMPS, now=now)
    async with database.connection() as conn:
        await conn.execute("create view reader as select * from stamps_2027_12")
    with pytest.raises(DatabaseError):
        await drop_expired(database, STAMPS, kept=timedelta(days=60), now=now)
    assert "stamps_2027_12" not in await names(database, STAMPS)
    async with database.connection() as conn:
        await conn.execute("drop view reader")
    assert "stamps_2027_12" in await drop_expired(database, STAMPS, kept=timedelta(days=60), now=now)


async def test_a_partition_that_an_operator_has_detached_is_kept(database):
    now = at("2028-04-30T00:00:00Z")
    await make_ahead(database, STAMPS, now=now)
    async with database.connection() as conn:
        await conn.execute("alter table stamps detach partition stamps_2027_12")
    assert "stamps_2027_12" not in await drop_expired(database, STAMPS, kept=timedelta(days=60), now=now)
    async with database.connection() as conn:
        assert await conn.fetchval("select to_regclass('stamps_2027_12')") is not None


def test_bounds_are_read_in_all_time_zones_of_a_session():
    utc = datetime(2028, 1, 1, tzinfo=UTC)
    for text in ("2028-01-01 00:00:00+00", "2028-01-01 05:45:00+05:45", "2027-12-31 19:00:00-05"):
        assert AUDIT.decode(text) == utc
    assert ATTEMPTS.decode(ATTEMPTS.encode(utc)) == utc
