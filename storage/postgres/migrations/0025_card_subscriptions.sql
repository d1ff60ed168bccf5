-- Subscriptions at the card platform. As with payments, a row is stored before the platform is called.

create table card_subscriptions (
    row_id text primary key,
    app_id text not null,
    uid text not null,
    config text not null,
    product_id text not null,
    -- The product as it was when it was bought: what each paid period grants.
    product jsonb not null,
    price_id text not null,
    -- With what the platform is called. A repeat of the call must not differ.
    customer_id text,
    payment_method text,
    trial_ends_at timestamptz,
    -- The platform's id, as soon as it is known.
    subscription_id text,
    -- `new` until the platform has responded, then its status; `refused` if it has refused the call, or `abandoned` if
    -- it has not got it.
    status text not null default 'new',
    period_ends_at timestamptz,
    canceled_at timestamptz,
    -- The number of reads that were begun, and the number of the last one that was applied. An earlier read that ends
    -- later changes nothing.
    reads bigint not null default 0,
    applied_read bigint not null default 0,
    created_at timestamptz not null,
    -- When the platform was asked about it last.
    checked_at timestamptz not null,
    foreign key (app_id, uid) references users (app_id, uid)
);

create unique index card_subscriptions_by_id on card_subscriptions (app_id, config, subscription_id);
create index card_subscriptions_by_user on card_subscriptions (app_id, uid, row_id);
create index card_subscriptions_open on card_subscriptions (app_id, checked_at)
    where status not in ('refused', 'abandoned', 'canceled', 'incomplete_expired');

-- Up to where the platform's list of events was compared with the webhooks that have arrived.
create table card_event_cursors (
    app_id text not null,
    config text not null,
    -- By the platform's clock.
    read_at timestamptz not null,
    primary key (app_id, config)
);
