-- Refunds that operators have asked for. A row is stored before the platform is called, and its id is part of the key of
-- that call. What a refund takes back follows from what the platform reports of it, as for any other refund.
create table operator_refunds (
    row_id text primary key,
    app_id text not null,
    uid text not null,
    platform text not null check (platform in ('cardpay', 'walletpay')),
    config text not null,
    -- The row of the payment or of the subscription.
    order_row text not null,
    -- The platform's id of the order or of the subscription.
    order_id text not null,
    -- The intent of a card, or a capture or a sale of the wallet.
    payment_id text not null,
    -- The payment of a subscription, as the ledger names it: the invoice of a card, or the sale of the wallet.
    sale_id text,
    amount bigint not null check (amount > 0),
    currency text not null,
    -- The `Idempotency-Key` of the request: a repeat finds the refund, however late it is.
    request_key text not null,
    -- `accepted`: the platform has it, but has not made it yet, or what it takes back is not applied yet.
    state text not null check (state in ('pending', 'accepted', 'made', 'failed')),
    refund_id text,
    problem text not null default '',
    created_at timestamptz not null,
    unique (app_id, order_row, request_key),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index operator_refunds_by_payment on operator_refunds (app_id, platform, payment_id);
create index operator_refunds_by_refund on operator_refunds (app_id, refund_id) where refund_id is not null;
create index operator_refunds_by_time on operator_refunds (created_at, row_id);
create index operator_refunds_by_user on operator_refunds (app_id, uid);

-- What lists show of rows of `payment_reversals`, and their order.
create table reversal_details (
    app_id text not null,
    platform text not null,
    payment_id text not null,
    reversal_id text not null,
    uid text not null,
    -- The platform's id of the order or of the subscription.
    order_id text not null,
    is_dispute boolean not null,
    -- The state as the platform names it, and until when it takes evidence for a dispute.
    status text not null,
    due_at timestamptz,
    happened_at timestamptz not null,
    primary key (app_id, platform, payment_id, reversal_id)
);

create index reversal_details_by_time on reversal_details (is_dispute, happened_at, payment_id, reversal_id);
create index reversal_details_by_user on reversal_details (app_id, uid);

-- Sums of what users have paid and got back, by the day in UTC. Each connection to the database has a part of its own,
-- so that payments do not wait for each other.
create table sales_days (
    app_id text not null,
    day date not null,
    currency text not null,
    kind text not null check (kind in ('charge', 'renewal', 'refund', 'restored')),
    part integer not null,
    payments bigint not null,
    amount bigint not null,
    primary key (app_id, day, currency, kind, part)
);

create index sales_days_by_day on sales_days (day);
