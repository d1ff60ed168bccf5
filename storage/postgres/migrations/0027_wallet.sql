-- Payments by the wallet platform. A row is stored before the platform is called, and its id is part of the keys of
-- these calls. Rows that have a `check_at` are read back from the platform then.

create table wallet_orders (
    row_id text primary key,
    app_id text not null,
    uid text not null,
    config text not null,
    bp_product_id text not null,
    -- The product as it was when the order was made, which says what it grants.
    product jsonb not null,
    amount bigint not null,
    currency text not null,
    return_url text not null,
    cancel_url text not null,
    -- The platform's id, once it is known.
    order_id text,
    status text not null,
    -- How many captures were declined. Each has a key of its own.
    declined integer not null default 0,
    created_at timestamptz not null,
    check_at timestamptz,
    foreign key (app_id, uid) references users (app_id, uid)
);

create unique index wallet_orders_by_order on wallet_orders (app_id, order_id);
create index wallet_orders_by_user on wallet_orders (app_id, uid);
create index wallet_orders_to_check on wallet_orders (app_id, check_at) where check_at is not null;

create table wallet_subscriptions (
    row_id text primary key,
    app_id text not null,
    uid text not null,
    config text not null,
    bp_product_id text not null,
    product jsonb not null,
    -- The plan that was subscribed to. The platform may say another one later.
    plan_id text not null,
    country text not null,
    return_url text not null,
    cancel_url text not null,
    subscription_id text,
    status text not null,
    -- When it was first read as active.
    activated_at timestamptz,
    -- Since when another subscription replaces it: what is unused of its payments then is refunded.
    superseded_at timestamptz,
    created_at timestamptz not null,
    check_at timestamptz,
    foreign key (app_id, uid) references users (app_id, uid)
);

create unique index wallet_subscriptions_by_subscription on wallet_subscriptions (app_id, subscription_id);
create index wallet_subscriptions_by_user on wallet_subscriptions (app_id, uid);
create index wallet_subscriptions_to_check on wallet_subscriptions (app_id, check_at) where check_at is not null;

create table wallet_upgrades (
    upgrade_id text primary key,
    app_id text not null,
    -- The rows of both subscriptions.
    old_row text not null references wallet_subscriptions (row_id),
    new_row text not null unique references wallet_subscriptions (row_id),
    bp_product_id text not null,
    state text not null check (state in (
        'awaiting_approval', 'new_active', 'old_cancelled', 'refunded', 'done', 'abandoned')),
    created_at timestamptz not null,
    changed_at timestamptz not null
);

create unique index wallet_upgrades_live on wallet_upgrades (old_row) where state not in ('done', 'abandoned');
create index wallet_upgrades_by_old on wallet_upgrades (old_row);

-- Refunds of payments of subscriptions: those that we make, and those that the platform reports.
create table wallet_refunds (
    row_id text primary key,
    app_id text not null,
    sale_id text not null,
    subscription_row text not null references wallet_subscriptions (row_id),
    amount bigint not null,
    currency text not null,
    state text not null check (state in ('pending', 'done', 'failed')),
    -- Whether we make it. There is at most one for each payment.
    ours boolean not null,
    refund_id text,
    problem text not null default '',
    created_at timestamptz not null
);

create unique index wallet_refunds_ours on wallet_refunds (app_id, sale_id) where ours;
create unique index wallet_refunds_by_refund on wallet_refunds (app_id, refund_id);
create index wallet_refunds_by_subscription on wallet_refunds (subscription_row);

-- How far the platform's list of events was compared with the inbox.
create table wallet_event_cursors (
    app_id text not null,
    config text not null,
    compared_at timestamptz not null,
    primary key (app_id, config)
);

-- What no webhook had reported, found by reading back from a platform. Also refunds that a platform refused.
create table payment_mismatches (
    mismatch_id bigint generated always as identity primary key,
    app_id text not null,
    platform text not null,
    kind text not null,
    -- The event, the entry of the ledger or the payment.
    subject text not null,
    detail text not null,
    found_at timestamptz not null
);

create index payment_mismatches_by_app on payment_mismatches (app_id, mismatch_id);
