"""The generated rows of each table that a list of the admin API reads.

`RARE` is an app with few users. Values that few rows have are spread over the whole time, so that a page of them
cannot be filled from the newest rows. The functions are those of `bench.tables.filling`, which has statements of
some of the tables, too.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bench.tables.filling import FILLED

RARE = "rare"
BOARD = "weekly"
_RARE_USERS = 20
_RARE_ROWS = 12
_OTHER_APPS = 18
APPS = ("default", RARE, *(f"app-{number:02}" for number in range(1, _OTHER_APPS + 1)))
"""A tenth of the users belong to the apps `app-01` to `app-18`, and nearly all others to `default`."""

FUNCTIONS = f"""
create function pg_temp.app(u bigint) returns text language sql immutable as
    $$ select case when u <= {_RARE_USERS} then '{RARE}'
        when u % 10 = 0 then 'app-' || lpad(((u / 10) % {_OTHER_APPS} + 1)::text, 2, '0') else 'default' end $$;
create function pg_temp.few(n bigint, of bigint) returns boolean language sql immutable as
    $$ select pg_temp.pick(n + 7, of) <= {_RARE_ROWS} $$;
"""


@dataclass(frozen=True, slots=True)
class Size:
    users: int
    records: int
    configs: int


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table."""

    table: str
    rows: Callable[[Size], int]
    fill: str
    """Inserts the rows from `$1` to `$2` of `$3`. `{users}` is the number of users."""


def _per_user(share: float) -> Callable[[Size], int]:
    return lambda size: max(1, int(size.users * share))


def _per_record(share: float) -> Callable[[Size], int]:
    return lambda size: max(8, int(size.records * share) // 8 * 8)


_STATEMENTS = {table.name: table.fill for table in FILLED}
_EACH = "from generate_series($1::bigint, $2::bigint) n, lateral (select pg_temp.at(n, $3::bigint) as at"
_USERS = f"{_EACH}) t"
_FROM = f"{_EACH}, pg_temp.pick(n, {{users}}) as u, pg_temp.few(n, $3::bigint) as few) t"
_OWNER = "pg_temp.app(u), pg_temp.uid(u, {users})"
_ID = "pg_temp.bench_id(at, n)"
_CARD_ID = "pg_temp.bench_id(at, -n)"
"""Differs from those of the wallet, with which payments by card are in one list."""
_PRODUCT = """'{"type": "consumable", "title": "100 coins", "asset": "coins", "quantity": 100}'::jsonb"""

_ACCOUNTS = (
    Part(
        "users",
        _per_user(1),
        f"""insert into users (app_id, uid, create_time, last_login, name, status, freeze_time, close_time,
                banned_at, ban_reason)
            select pg_temp.app(n), pg_temp.uid(n, {{users}}), at, at, 'User ' || n,
                case when pg_temp.few(n, $3::bigint) then 'frozen' when n % 50 = 0 then 'deactivated'
                    else 'active' end, at, at + interval '30 days',
                case when pg_temp.few(n + 90, $3::bigint) then at end, '' {_USERS}""",
    ),
    *(
        Part(
            "identities",
            _per_user(1),
            f"""insert into identities (app_id, platform, social_id, uid, create_time)
                select pg_temp.app(n), '{platform}', {social_id}, pg_temp.uid(n, {{users}}), at {_USERS}
                where {condition}""",
        )
        for platform, social_id, condition in (
            ("device", "md5('device' || n)", "true"),
            ("email", "'user' || n || '@example.com'", "n % 10 < 6"),
            ("phone", "'+1' || 2000000000 + n", "n % 10 = 7"),
            ("google", "'1' || lpad(n::text, 20, '0')", "n % 10 > 6"),
        )
    ),
    Part(
        "earlier_emails",
        _per_user(0.05),
        f"""insert into earlier_emails (app_id, uid, address, replaced_at)
            select {_OWNER}, 'old' || n || '@example.com', at {_FROM}""",
    ),
    Part(
        "pending_emails",
        _per_user(0.05),
        f"""insert into pending_emails (app_id, uid, address, created_at)
            select pg_temp.app(n * 20), pg_temp.uid(n * 20, {{users}}), 'new' || n || '@example.com', at
            {_USERS}""",
    ),
    Part("sessions", _per_user(1), _STATEMENTS["sessions"]),
    Part(
        "login_failures",
        _per_user(0.5),
        f"""insert into login_failures (failure_id, app_id, request_id, operation, platform, social_id, uid,
                error_type, steps, failed_at)
            select {_ID}, pg_temp.app(u), md5('q' || n), 'login', case when few then 'apple' else 'email' end,
                'user' || u || '@example.com', case when n % 2 = 0 then pg_temp.uid(u, {{users}}) end,
                'account.auth_failed', '[{{"step": "password", "seen": "wrong"}}]'::jsonb, at {_FROM}""",
    ),
)
_STREAMS = (
    Part("conversations", _per_record(0.125), _STATEMENTS["conversations"]),
    Part(
        "conversation_records",
        _per_record(1),
        """insert into conversation_records (app_id, conversation_id, record_id, status, strategy, content,
                input_token, output_token, stream_id, process)
            select 'default', md5('c' || (n - 1) / 8 + 1), (n - 1) % 8 + 1, 'complete', 'chat', (
                    select jsonb_build_array(jsonb_build_object('role', 'user', 'content', substr(text, 1, 80)),
                        jsonb_build_object('role', 'assistant', 'content', substr(text, 1, 250))) from prose),
                200, 150, '', '' from generate_series($1::bigint, $2::bigint) n where $3::bigint > 0""",
    ),
    Part("attempts", _per_record(0.2), _STATEMENTS["attempts"]),
)
_MONEY = (
    Part("asset_entries", _per_user(2), _STATEMENTS["asset_entries"]),
    Part(
        "assets",
        _per_user(0.5),
        f"""insert into assets (app_id, uid, name, subscription, type, quantity, total_quantity, platform,
                product_id, bp_product_id, receipt_id, origin, is_trial, renews)
            select pg_temp.app(n * 2), pg_temp.uid(n * 2, {{users}}), 'minutes', '', 'consumable', 5, 10,
                'walletpay', 'P-1', 'minutes.100', md5('r' || n), 'purchase', false, false {_USERS}""",
    ),
    Part(
        "wallet_orders",
        _per_user(0.5),
        f"""insert into wallet_orders (row_id, app_id, uid, config, bp_product_id, product, amount, currency,
                return_url, cancel_url, order_id, status, created_at)
            select {_ID}, {_OWNER}, 'Default', 'coins_100', {_PRODUCT}, 199, 'USD', '', '', 'O-' || md5('o' || n),
                case when few then 'VOIDED' when n % 5 = 0 then 'CREATED' else 'COMPLETED' end, at {_FROM}""",
    ),
    Part(
        "card_payments",
        _per_user(0.5),
        f"""insert into card_payments (payment_id, app_id, uid, config, amount, currency, product_id, product,
                intent_id, status, created_at, checked_at)
            select {_CARD_ID}, {_OWNER}, 'Default', 199, 'EUR', 'coins_100', {_PRODUCT}, 'pi_' || md5('p' || n),
                case when few then 'requires_action' when n % 20 = 0 then 'canceled' else 'succeeded' end, at, at
            {_FROM}""",
    ),
    Part(
        "card_sales",
        _per_user(0.3),
        f"""insert into card_sales (app_id, config, sale_id, uid, intent_id)
            select pg_temp.app(u), 'Default', 'in_' || md5('s' || n), pg_temp.uid(u, {{users}}),
                'pi_' || md5('p' || n)
            {_FROM}""",
    ),
    Part(
        "wallet_subscriptions",
        _per_user(0.1),
        f"""insert into wallet_subscriptions (row_id, app_id, uid, config, bp_product_id, product, plan_id, country,
                return_url, cancel_url, subscription_id, status, created_at)
            select {_ID}, {_OWNER}, 'Default', 'pro_month', {_PRODUCT}, 'P-1', 'DE', '', '', 'I-' || md5('i' || n),
                case when few then 'SUSPENDED' else 'ACTIVE' end, at {_FROM}""",
    ),
    Part(
        "card_subscriptions",
        _per_user(0.1),
        f"""insert into card_subscriptions (row_id, app_id, uid, config, product_id, product, price_id,
                subscription_id, status, period_ends_at, created_at, checked_at)
            select {_CARD_ID}, {_OWNER}, 'Default', 'pro_month', {_PRODUCT}, 'price_1', 'sub_' || md5('u' || n),
                case when few then 'past_due' else 'active' end, at + interval '30 days', at, at {_FROM}""",
    ),
    Part(
        "payment_reversals",
        _per_user(0.1),
        f"""insert into payment_reversals (app_id, platform, payment_id, reversal_id, kind, amount, currency, state,
                happened_at, version)
            select pg_temp.app(u), 'cardpay', 'pi_' || md5('p' || n), 're_' || md5('r' || n),
                case when n % 4 = 0 then 'dispute' else 'refund' end, 199, 'EUR', 'taken', at, n {_FROM}""",
    ),
    Part(
        "reversal_details",
        _per_user(0.1),
        f"""insert into reversal_details (app_id, platform, payment_id, reversal_id, uid, order_id, is_dispute,
                status, due_at, happened_at)
            select pg_temp.app(u), 'cardpay', 'pi_' || md5('p' || n), 're_' || md5('r' || n),
                pg_temp.uid(u, {{users}}), 'pi_' || md5('p' || n), n % 4 = 0,
                case when n % 4 > 0 then 'succeeded' when few then 'needs_response' else 'lost' end,
                at + interval '7 days', at {_FROM}""",
    ),
    Part(
        "sales_days",
        lambda _: 365,
        """insert into sales_days (app_id, day, currency, kind, part, payments, amount)
            select pg_temp.app(n), current_date - n::integer, currency, kind, 1, 40, 7960
            from generate_series($1::bigint, $2::bigint) n, unnest(array['USD', 'EUR']) currency,
                unnest(array['charge', 'renewal', 'refund']) kind where n <= $3::bigint""",
    ),
    Part(
        "withdrawals",
        _per_user(0.2),
        f"""insert into withdrawals (withdrawal_id, app_id, uid, app_withdraw_id, request, config, platform,
                merchant_id, amount, currency, status, reason, payout_id, created_at, updated_at, unknown_at,
                check_at)
            select {_ID}, {_OWNER}, 'w' || n, '{{}}', 'Default', 'paypal', 'merchant', 500, 'USD',
                case when few then 'START' when n % 50 = 0 then 'FAILED' else 'SUCCESS' end, '',
                md5('payout' || n), at, at, case when few and n % 2 = 0 then at end, case when few then at end
            {_FROM}""",
    ),
    Part(
        "payment_mismatches",
        _per_user(0.05),
        f"""insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at)
            select pg_temp.app(u), 'cardpay', case when few then 'amount_differs' else 'missed_event' end,
                'evt_' || md5('m' || n), 'no webhook has delivered it', at {_FROM}""",
    ),
    Part(
        "webhooks",
        _per_user(1),
        f"""insert into webhooks (webhook_id, app_id, source, config, event_id, headers, body, received_at, status,
                error, worked_at)
            select {_ID}, pg_temp.app(u),
                case when few then 'payouts' when n % 2 = 0 then 'cardpay' else 'walletpay' end,
                'Default', 'evt_' || md5('w' || n), jsonb_build_object('signature', md5('s' || n)),
                convert_to(substr(text, 1 + n::int % 4000, 300), 'UTF8'), at,
                case when pg_temp.few(n + 1, $3::bigint) then 'failed' else 'done' end, null, at {_FROM}, prose""",
    ),
)
_ENGAGEMENT = (
    Part(
        "mails",
        _per_user(1),
        f"""insert into mails (mail_id, app_id, uid, strategy, recipient, tracked, status, job_id, created_at,
                sent_at)
            select {_ID}, {_OWNER}, case when few then 'seldom' else 'news' end, md5('m' || n) || md5('n' || n),
                true, case when pg_temp.few(n + 1, $3::bigint) then 'refused' else 'sent' end, n, at, at {_FROM}""",
    ),
    Part(
        "suppressions",
        _per_user(0.1),
        f"""insert into suppressions (app_id, address, strategy, reason, created_at)
            select pg_temp.app(u), 'user' || n || '@example.com', '', 'unsubscribed', at {_FROM}""",
    ),
    Part(
        "predictions",
        _per_user(0.5),
        f"""insert into predictions (prediction_id, app_id, uid, strategy, account, model, body, is_awaited,
                host_id, status, error, created_at, ended_at)
            select {_ID}, {_OWNER}, case when few then 'seldom' else 'local' end, 'models', 'parley/smollm2',
                substr(text, 1 + n::int % 4000, 300), false, md5('h' || n),
                case when pg_temp.few(n + 1, $3::bigint) then 'failed' else 'succeeded' end, '', at, at
            {_FROM}, prose""",
    ),
    Part(
        "image_tasks",
        _per_user(0.3),
        f"""insert into image_tasks (task_id, operation_id, app_id, uid, strategy, account, type, request,
                host_task_id, status, created_at, lost_at, ended_at)
            select {_ID}, md5('op' || n), {_OWNER}, case when few then 'seldom' else 'local' end, 'images',
                'imagine', '{{"prompt": "a house by the sea"}}', md5('t' || n),
                case when pg_temp.few(n + 1, $3::bigint) then 'FAILURE' else 'SUCCESS' end, at, at, at {_FROM}""",
    ),
    Part(
        "reported_events",
        _per_user(0.2),
        f"""insert into reported_events (event_id, app_id, uid, sink, event, happened_at, data, attempts, error,
                due_at, dead_at)
            select {_ID}, {_OWNER}, case when few then 'seldom' else 'hook' end, 'asset', at, '{{"quantity": 1}}',
                8, 'answered 503', at, case when n % 4 = 0 then at end {_FROM}""",
    ),
    Part(
        "leaderboard_periods",
        lambda _: 60,
        f"""insert into leaderboard_periods (app_id, board, starts_at, ends_at, descending, state, closed_at)
            select 'default', '{BOARD}', at, at + interval '6 days', true, 'closed', at + interval '6 days'
            {_USERS}""",
    ),
    Part(
        "leaderboard_scores",
        _per_user(1),
        f"""insert into leaderboard_scores (period_id, app_id, uid, score, change, posted_at)
            select (select max(period_id) from leaderboard_periods), pg_temp.app(n), pg_temp.uid(n, {{users}}),
                pg_temp.pick(n, 1000000), n, at {_USERS}""",  # noqa: S608 - our own text
    ),
)
_OPERATIONS = (
    Part(
        "audit",
        _per_user(0.5),
        f"""insert into audit (changed_at, actor, operator_id, action, app_id, kind, name, before, after, reason,
                request_id, address)
            select at, case when few then 'seldom' else 'operator' || n % 20 end, md5('o' || n % 20),
                case when pg_temp.few(n + 1, $3::bigint) then 'withdrawal.settle' else 'user.end_sessions' end,
                pg_temp.app(u), 'user', pg_temp.uid(u, {{users}}), null, jsonb_build_object('sessions', 3),
                'a ticket of support', {_ID}, '203.0.113.7' {_FROM}""",
    ),
    Part(
        "operators",
        lambda _: 200,
        f"""insert into operators (operator_id, name, role, digest, created_at)
            select {_ID}, 'operator' || n, 'viewer', md5('d' || n), at {_USERS}""",
    ),
    Part(
        "procrastinate_jobs",
        _per_user(0.1),
        """insert into procrastinate_jobs (queue_name, task_name, args, status, scheduled_at, attempts)
            select 'parley', (array['send_mail', 'work_webhook', 'remove_objects', 'follow_prediction'])[n % 4 + 1],
                jsonb_build_object('app_id', 'default', 'webhook_id', md5('j' || n)),
                case when n % 10 = 0 then 'failed' else 'todo' end::procrastinate_job_status,
                case when n % 3 = 0 then now() + make_interval(secs => n) end, n % 5
            from generate_series($1::bigint, $2::bigint) n where $3::bigint > 0""",
    ),
    Part(
        "procrastinate_events",
        _per_user(0.1),
        """insert into procrastinate_events (job_id, type, at)
            select id, type, now() - make_interval(secs => id) from procrastinate_jobs,
                unnest(array['deferred', 'started', 'failed']::procrastinate_job_event_type[]) type
            where id between $1::bigint and $2::bigint and $3::bigint > 0
                and (type = 'deferred' or status = 'failed')""",
    ),
    Part(
        "job_failures",
        _per_user(0.1),
        """insert into job_failures (job_id, error_type, message, error_group, process, configs, failed_at)
            select id, 'backend unavailable', 'the server did not answer', task_name || '.' || id % 50,
                'p' || id % 8, '[["default", "mail", "news"]]', now() - make_interval(secs => id)
            from procrastinate_jobs
            where id between $1::bigint and $2::bigint and $3::bigint > 0 and status = 'failed'""",
    ),
)
PARTS = (*_ACCOUNTS, *_STREAMS, *_MONEY, *_ENGAGEMENT, *_OPERATIONS)

BUSY_ROWS = 0.005
"""The number of entries of the busiest user in each table, as a share of the number of users."""
BUSY = (
    """insert into asset_entries (app_id, uid, key, kind, name, subscription, type, quantity, platform, product_id,
            bp_product_id, receipt_id, origin, channel, is_trial, renews, entered_at)
        select 'default', $1, 'busy:' || n, 'consume', 'minutes', '', 'consumable', 1, 'walletpay', 'P-1',
            'minutes.100', '', 'purchase', 'server', false, false, now() - make_interval(mins => n)
        from generate_series(1, $2::int) n""",
    """insert into conversations (app_id, conversation_id, uid, last_record_id, record_count, record_token)
        select 'default', md5('busy' || n), $1, 0, 0, 0 from generate_series(1, $2::int) n""",
    """insert into mails (mail_id, app_id, uid, strategy, recipient, tracked, status, job_id, created_at)
        select pg_temp.bench_id(now() - make_interval(mins => n), n), 'default', $1, 'news', md5('busy'), true,
            'sent', n, now() - make_interval(mins => n) from generate_series(1, $2::int) n""",
    """insert into sessions (app_id, digest, uid, platform, social_id, create_time, last_seen, expire_time)
        select 'default', md5('busy' || n) || md5('b' || n), $1, 'device', 'busy', now() - make_interval(mins => n),
            now(), now() - make_interval(mins => n) from generate_series(1, $2::int) n""",
)
"""Rows of one user, `$1`: as many as `$2` in each table."""
