"""Generated rows of the tables that grow, spread over a year, in the order in which a server would store them."""

import asyncio
from dataclasses import dataclass

import asyncpg

APP = "default"
_BATCH = 200_000
_SECONDS = 365 * 24 * 3600

# `bench_id` has the form of an id of `streams.wire.ids.new_id`. Texts are pieces of random digits, which PostgreSQL
# compresses as little as prose.
# All times are relative to one moment, because the ids of users contain them.
_FUNCTIONS = """
create function pg_temp.at(n bigint, of bigint) returns timestamptz language sql volatile as
    $$ select '{now}'::timestamptz - make_interval(secs => {seconds} * (1 - n::float8 / of)) $$;
create function pg_temp.bench_id(at timestamptz, n bigint) returns text language sql immutable as
    $$ select lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || left(md5(n::text), 19) $$;
create function pg_temp.pick(n bigint, of bigint) returns bigint language sql immutable as
    $$ select (hashint8(n)::bigint & 2147483647) % of + 1 $$;
create function pg_temp.uid(u bigint, users bigint) returns text language sql volatile as
    $$ select pg_temp.bench_id(pg_temp.at(u, users), u) $$;
create temp table prose (text text storage plain);
insert into prose select string_agg(md5(i::text), '') from generate_series(1, 230) i;
"""


@dataclass(frozen=True, slots=True)
class Filled:
    """A table, and the statement that fills it."""

    name: str
    share: float
    """The number of rows, as a multiple of the number of attempts."""
    fill: str
    """Inserts the rows from `$1` to `$2` of `$3`. `{users}` and `{conversations}` are the numbers of those rows."""
    is_named: bool = False
    """Whether rows of other tables name its rows, so that all are stored before the first of them."""
    ordered: frozenset[str] = frozenset()
    """The indexes whose keys grow with the time: rows are added at their end, and older parts are rarely read."""


_USER = "pg_temp.uid(pg_temp.pick(n, {users}), {users})"
_FROM = "from generate_series($1::bigint, $2::bigint) n, lateral (select pg_temp.at(n, $3::bigint) as at) t"
FILLED = (
    Filled(
        "users",
        0.05,
        f"""insert into users (app_id, uid, create_time, last_login)
            select '{APP}', pg_temp.uid(n, {{users}}), at, at {_FROM}""",
        is_named=True,
        ordered=frozenset({"users_pkey"}),
    ),
    Filled(
        "identities",
        0.05,
        f"""insert into identities (app_id, platform, social_id, uid, create_time)
            select '{APP}', 'device', md5('device' || n), pg_temp.uid(n, {{users}}), at {_FROM}""",
    ),
    Filled(
        "sessions",
        0.1,
        f"""insert into sessions
                (app_id, digest, uid, platform, social_id, create_time, last_seen, expire_time, user_agent, address)
            select '{APP}', md5('a' || n) || md5('b' || n), {_USER}, 'device', md5('device' || n), at, at,
                at + interval '30 days', repeat('x', 90), '203.0.113.7' {_FROM}""",
    ),
    Filled(
        "conversations",
        0.125,
        f"""insert into conversations (app_id, conversation_id, uid, last_record_id, record_count, record_token,
                created_at, updated_at)
            select '{APP}', md5('c' || n), {_USER}, 4, 4, 900, at, at + interval '1 hour' {_FROM}""",
        ordered=frozenset({"conversations_by_last_use"}),
    ),
    Filled(
        "conversation_records",
        0.5,
        f"""insert into conversation_records (app_id, conversation_id, record_id, status, strategy, content,
                input_token, output_token, stream_id, process, created_at, updated_at)
            select '{APP}', md5('c' || (n - 1) / 4 + 1), (n - 1) % 4 + 1, 'complete', 'chat', jsonb_build_array(
                    jsonb_build_object('role', 'user', 'content', jsonb_build_array(jsonb_build_object(
                        'type', 'text', 'text', substr(text, 1 + n::int % 4000, 80)))),
                    jsonb_build_object('role', 'assistant', 'content', jsonb_build_array(jsonb_build_object(
                        'type', 'text', 'text', substr(text, 1 + n::int % 4000, 200 + n::int % 1500),
                        'audio', jsonb_build_object('key', 'speech/{APP}/2026-01-01/' || md5('k' || n)))))),
                200, 150, pg_temp.bench_id(at, n), pg_temp.bench_id(at, n % 50), at, at + interval '9 seconds'
            {_FROM}, prose""",
    ),
    Filled(
        "attempts",
        1.0,
        f"""insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, outcome, message,
                first_output_ms, elapsed_ms, input_unit, output_unit, price, usage_source, created_at)
            select '{APP}', pg_temp.bench_id(s.at, stream), n % 2, {_USER}, (array['llm', 'tts'])[n % 2 + 1],
                'chat',             'openai', 'won', '', 420, 3100, 1200, 340, 0.0012345, 'vendor', s.at
            {_FROM}, lateral (select (n + 1) / 2 as stream) i,
                lateral (select pg_temp.at((n + 1) / 2, $3::bigint / 2 + 1) as at) s""",
        ordered=frozenset({"attempts_pkey"}),
    ),
    Filled(
        "asset_entries",
        0.5,
        f"""insert into asset_entries (app_id, uid, key, kind, name, subscription, type, quantity, platform,
                product_id, bp_product_id, receipt_id, origin, channel, is_trial, renews, entered_at)
            select '{APP}', {_USER}, (array['task:', 'wallet:sale:', 'task:', 'task:'])[n % 4 + 1] || md5('e' || n),
                (array['consume', 'grant', 'consume', 'consume'])[n % 4 + 1], 'minutes', '', 'consumable', 1,
                'walletpay', 'P-1', 'minutes.100', md5('r' || n), 'purchase', 'webhook', false, false, at
            {_FROM}""",
        ordered=frozenset({"asset_entries_pkey"}),
    ),
    Filled(
        "webhooks",
        0.125,
        f"""insert into webhooks (webhook_id, app_id, source, config, event_id, delivery_id, headers, body,
                received_at, status, worked_at)
            select pg_temp.bench_id(at, n), '{APP}', (array['cardpay', 'walletpay'])[n % 2 + 1], 'main',
                'evt_' || md5('w' || n), null, jsonb_build_object('signature', md5('s' || n) || md5('t' || n)),
                convert_to(substr(text, 1 + n::int % 4000, 1000 + n::int % 2000), 'UTF8'), at, 'done', at
            {_FROM}, prose""",
        ordered=frozenset({"webhooks_pkey", "webhooks_by_age", "webhooks_by_status"}),
    ),
    Filled(
        "mails",
        0.125,
        f"""insert into mails (mail_id, app_id, uid, strategy, recipient, tracked, status, job_id, created_at,
                sent_at)
            select pg_temp.bench_id(at, n), '{APP}', {_USER}, 'news', md5('m' || n) || md5('n' || n), true, 'sent',
                n, at, at {_FROM}""",
        ordered=frozenset({"mails_pkey", "mails_by_time"}),
    ),
    Filled(
        "reported_events",
        0.125,
        f"""insert into reported_events (event_id, app_id, sink, event, uid, happened_at, data, attempts, error,
                due_at, dead_at)
            select pg_temp.bench_id(at, n), '{APP}', 'hook', 'asset.changed', {_USER}, at,
                jsonb_build_object('user_id', {_USER}, 'key', md5('e' || n), 'name', 'minutes', 'quantity', 1,
                    'receipt_id', md5('r' || n), 'product_id', 'P-1'), 8, 'answered 503', at, at
            {_FROM}""",
        ordered=frozenset({"reported_events_pkey", "reported_events_dead", "reported_events_due"}),
    ),
    Filled(
        "audit",
        0.05,
        f"""insert into audit (changed_at, actor, operator_id, action, app_id, kind, name, before, after, reason,
                request_id, address)
            select at, 'operator' || n % 20, md5('o' || n % 20), 'user.end_sessions', '{APP}', 'user', {_USER},
                null, jsonb_build_object('sessions', 3), 'a ticket of support', pg_temp.bench_id(at, n),
                '203.0.113.7'
            {_FROM}""",
        ordered=frozenset({"audit_pkey", "audit_by_time"}),
    ),
    Filled(
        "idempotency_keys",
        0.125,
        f"""insert into idempotency_keys (app_id, digest, fingerprint, operation_id, created_at, claimed_at,
                answered_at, status, headers, body)
            select '{APP}', md5('i' || n) || md5('j' || n), md5('f' || n) || md5('g' || n), pg_temp.bench_id(at, n),
                at, at, at, 200, jsonb_build_object('content-type', 'application/json'),
                convert_to(substr(text, 1 + n::int % 4000, 200), 'UTF8')
            {_FROM}, prose""",
        ordered=frozenset({"idempotency_keys_by_age"}),
    ),
)


async def prepare(conn: asyncpg.Connection) -> None:
    """Create what the statements call. Foreign keys are not checked on this connection from now on."""
    await conn.execute("set session_replication_role = replica")
    now = await conn.fetchval("select now()::text")
    await conn.execute(_FUNCTIONS.format(seconds=_SECONDS, now=now))


def rows_of(table: Filled, *, attempts: int) -> int:
    return int(table.share * attempts)


async def fill(conn: asyncpg.Connection, *, attempts: int, begin: float, end: float) -> None:
    """Insert the part of the rows of all tables from the fraction `begin` to the fraction `end`."""
    numbers = {table.name: rows_of(table, attempts=attempts) for table in FILLED}
    for table in FILLED:
        of = numbers[table.name]
        last = (of if begin == 0 else 0) if table.is_named else int(of * end)
        statement = table.fill.replace("{users}", str(numbers["users"]))
        for first in range(int(of * begin) + 1, last + 1, _BATCH):
            await conn.execute(statement, first, min(first + _BATCH - 1, last), of)
            await asyncio.sleep(0)
        await conn.execute(f"vacuum (analyze) {table.name}")
    await conn.execute("checkpoint")
