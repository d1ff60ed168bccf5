"""Rows of an app for all lists of the console, with the longest contents that are usual in each column."""

import asyncpg

from streams.wire.ids import new_id

APP = "fitness-coach"
_AT = "timestamptz '2025-12-28 22:58:59Z' - make_interval(mins => n)"
_GIVEN = "(select $1::text as app, $2::text as salt, $3::text as person) given"
_EACH = f"from generate_series(1, 3) as numbers (n), {_GIVEN}"
_ID = "md5(salt || n)"
_PRODUCT = '{"type": "subscription", "title": "Premium, yearly", "asset": "premium", "quantity": 1}'
_ERROR = "'vendor_error: the host refused the prediction for the reason that the account has no credit left'"
_ROWS = (
    f"""insert into users (app_id, uid, create_time, last_login, name, status, banned_at, ban_reason)
        select app, person, {_AT}, {_AT}, '', 'active', {_AT}, 'Has sold units' {_EACH}
            where n = 1 and salt > ''""",
    f"""insert into identities (app_id, platform, social_id, uid, create_time)
        select app, 'email', 'a.rather.long.address' || n || '@mail.example.com', person, {_AT} {_EACH}
            where n = 1 and salt > ''""",
    f"""insert into login_failures (failure_id, app_id, request_id, operation, platform, social_id, uid,
            error_type,
            steps, failed_at)
        select {_ID}, app, {_ID}, 'reauthorize', 'email', 'a.rather.long.address' || n || '@mail.example.com',
            person,
            'account.verify_code_invalid', '[{{"step": "password", "seen": "wrong"}}]', now() {_EACH}""",
    f"""insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, model, outcome, message,
            first_output_ms, elapsed_ms, input_unit, output_unit, price, usage_source)
        select app, {_ID}, 1, person, 'llm', 'coach_conversation', 'parley_compatible', 'llama-3.3-70b-versatile',
            'failed', {_ERROR}, 420, 31000, 1200, 340, 0.0012345, 'vendor' {_EACH}""",
    f"""insert into wallet_orders (row_id, app_id, uid, config, bp_product_id, product, amount, currency,
            return_url,
            cancel_url, order_id, status, created_at)
        select {_ID}, app, person, 'Default', 'premium_yearly_2025', '{_PRODUCT}', 1234599, 'USD', '', '',
            upper(left({_ID}, 17)), 'COMPLETED', {_AT} {_EACH}""",
    f"""insert into card_payments (payment_id, app_id, uid, config, amount, currency, product_id, product,
            intent_id,
            status, created_at, checked_at)
        select {_ID}, app, person, 'Default', 1234599, 'USD', 'premium_yearly_2025', '{_PRODUCT}', 'pi_' || {_ID},
            case n when 1 then 'requires_action' else 'succeeded' end, {_AT}, {_AT} {_EACH}""",
    f"""insert into wallet_subscriptions (row_id, app_id, uid, config, bp_product_id, product, plan_id, country,
            return_url, cancel_url, subscription_id, status, created_at)
        select {_ID}, app, person, 'Default', 'premium_yearly_2025', '{_PRODUCT}', 'P-1', 'DE', '', '',
            'I-' || {_ID},
            'APPROVAL_PENDING', {_AT} {_EACH}""",
    f"""insert into card_subscriptions (row_id, app_id, uid, config, product_id, product, price_id,
            subscription_id,
            status, period_ends_at, created_at, checked_at)
        select 'c' || {_ID}, app, person, 'Default', 'premium_yearly_2025', '{_PRODUCT}', 'price_1',
            'sub_' || {_ID},
            'past_due', {_AT}, {_AT}, {_AT} {_EACH}""",
    f"""insert into reversal_details (app_id, platform, payment_id, reversal_id, uid, order_id, is_dispute,
            status,
            due_at, happened_at)
        select app, 'cardpay', 'pi_' || {_ID}, 're_' || {_ID} || part, person, 'pi_' || {_ID}, part = 'dispute',
            case part when 'dispute' then 'needs_response' else 'succeeded' end, {_AT}, {_AT}
        {_EACH}, unnest(array['refund', 'dispute']) part""",
    f"""insert into payment_reversals (app_id, platform, payment_id, reversal_id, kind, amount, currency, state,
            happened_at, version)
        select app, 'cardpay', 'pi_' || {_ID}, 're_' || {_ID} || part, part, 1234599, 'USD', 'taken', {_AT}, n
        {_EACH}, unnest(array['refund', 'dispute']) part where person > ''""",
    f"""insert into withdrawals (withdrawal_id, app_id, uid, app_withdraw_id, request, config, platform,
            merchant_id,
            amount, currency, status, reason, payout_id, created_at, updated_at, unknown_at, check_at)
        select {_ID}, app, person, {_ID}, '{{}}', 'Default', 'paypal', 'merchant', 1234599, 'USD', 'START',
            'RECEIVER_UNREGISTERED', {_ID}, {_AT}, {_AT}, {_AT}, now() {_EACH}""",
    f"""insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at)
        select app, 'walletpay', (array['amount_differs', 'refund_refused', 'payout_unknown'])[n], {_ID},
            'expected 1999 USD and the platform reports 999 USD for the capture', {_AT} {_EACH}""",
    f"""insert into webhooks (webhook_id, app_id, source, config, event_id, headers, body, received_at, status,
            error)
        select {_ID}, app, 'walletpay', 'Default', 'WH-' || upper({_ID}), '{{}}', '{{}}', {_AT}, 'failed',
            'config_invalid: the webhook_id of the payment config Default is not that of the platform' {_EACH}""",
    f"""insert into mails (mail_id, app_id, uid, strategy, recipient, tracked, status, job_id, created_at,
            sent_at)
        select {_ID}, app, person, 'weekly_progress_report', {_ID}, true, 'suppressed', n, {_AT}, {_AT}
            {_EACH}""",
    f"""insert into suppressions (app_id, address, strategy, reason, created_at)
        select app, 'a.rather.long.address' || n || '@mail.example.com', '', 'unsubscribed', {_AT} {_EACH}""",
    f"""insert into predictions (prediction_id, app_id, uid, strategy, account, model, body, is_awaited, host_id,
            status, error, created_at, ended_at)
        select {_ID}, app, person, 'portrait_of_the_week', 'replicate-production',
            'black-forest-labs/flux-1.1-pro', '{{}}',
            false, {_ID}, 'failed', {_ERROR}, {_AT}, {_AT} {_EACH}""",
    f"""insert into image_tasks (task_id, operation_id, app_id, uid, strategy, account, type, request,
            host_task_id,
            status, host_task, created_at, lost_at, ended_at)
        select {_ID}, {_ID}, app, person, 'portrait_of_the_week', 'midjourney-production', 'imagine', '{{}}',
            {_ID},
            'failed', jsonb_build_object('failReason', {_ERROR}), {_AT}, {_AT}, {_AT} {_EACH}""",
    f"""insert into reported_events (event_id, app_id, uid, sink, event, happened_at, data, attempts, error,
            due_at)
        select {_ID}, app, person, 'customer_relations', 'subscription_renewed', {_AT}, '{{}}', 8,
            'sink answered 503 Service Temporarily Unavailable', {_AT} {_EACH}""",
    f"""insert into audit (changed_at, actor, operator_id, action, app_id, kind, name, before, after, reason,
            request_id, address)
        select {_AT}, 'grace.hopper@example.com', {_ID}, 'user.end_sessions', app, 'user', person, null,
            '{{"sessions": 3}}', 'The user has asked by telephone, ticket 4711 of the support desk', {_ID},
            '203.0.113.7' {_EACH}""",
    f"""with held as (
            insert into procrastinate_jobs (queue_name, task_name, args, status, attempts)
            select 'parley', 'follow_prediction', jsonb_build_object('app_id', app, 'uid', person,
            'webhook_id', {_ID}),
                'failed', 6 {_EACH} returning id, args ->> 'app_id' as app)
        insert into job_failures (job_id, error_type, message, error_group, process, configs)
        select id, 'backend unavailable', 'the platform answered 503 Service Temporarily Unavailable',
            'follow_prediction.0123456789', 'a-process', jsonb_build_array(jsonb_build_array(app, 'events',
            'customer_relations')) from held""",
    f"""insert into job_schedules (task, schedule)
        select 'verify_ledger_' || n, '* * * * * */30' {_EACH} where salt || app || person > ''""",
)  # fmt: skip
_TABLES = (
    "identities", "login_failures", "attempts", "wallet_orders", "card_payments",
    "wallet_subscriptions", "card_subscriptions", "reversal_details", "payment_reversals", "withdrawals",
            "payment_mismatches", "webhooks",
    "mails", "suppressions", "predictions", "image_tasks", "reported_events", "users",
)  # fmt: skip


async def fill(conn: asyncpg.Connection) -> str:
    """Store a user, and three rows of the user for each list. Return the user's id."""
    uid, salt = new_id(), new_id()
    for statement in _ROWS:
        await conn.execute(statement, APP, salt, uid)
    return uid


async def empty(conn: asyncpg.Connection) -> None:
    """Delete what `fill` has stored."""
    for table in _TABLES:
        await conn.execute(f"delete from {table} where app_id = $1", APP)
    await conn.execute("delete from procrastinate_jobs where args ->> 'app_id' = $1", APP)
    await conn.execute("delete from job_schedules")
