-- Payments at the card platform. A row is stored before the platform is called, and its id is part of the keys of the
-- calls, so a repeat after a crash finds what the platform has done.

create table card_customers (
    app_id text not null,
    uid text not null,
    config text not null,
    row_id text not null,
    -- The platform's id, as soon as it is known.
    customer_id text,
    created_at timestamptz not null,
    primary key (app_id, uid, config),
    foreign key (app_id, uid) references users (app_id, uid)
);

create table card_payments (
    payment_id text primary key,
    app_id text not null,
    uid text not null,
    config text not null,
    amount bigint not null check (amount > 0),
    currency text not null,
    -- What it grants, as it was offered at the time.
    product_id text,
    product jsonb,
    -- With what the platform is called. A repeat of the call must not differ.
    customer_id text,
    payment_method text,
    confirms boolean not null default false,
    -- The platform's id, as soon as it is known.
    intent_id text,
    -- `new` until the platform has responded, then its status, or `abandoned` if it has not got the call.
    status text not null default 'new',
    created_at timestamptz not null,
    -- When the platform was asked about it last.
    checked_at timestamptz not null,
    foreign key (app_id, uid) references users (app_id, uid)
);

create unique index card_payments_by_intent on card_payments (app_id, config, intent_id);
create index card_payments_by_user on card_payments (app_id, uid, payment_id);
create index card_payments_open on card_payments (app_id, checked_at)
    where status not in ('succeeded', 'canceled', 'abandoned');

-- What the user or the app has said about a payment. It is deleted with the account.
create table card_payment_details (
    payment_id text primary key references card_payments (payment_id),
    app_id text not null,
    uid text not null,
    email text,
    device_info jsonb
);

create index card_payment_details_by_user on card_payment_details (app_id, uid);

-- Payments and invoices that have granted something.
create table card_sales (
    app_id text not null,
    config text not null,
    -- The platform's id of the payment, or of the invoice of a subscription.
    sale_id text not null,
    uid text not null,
    -- The payment of an invoice, which refunds and disputes name.
    intent_id text,
    -- The refund or the dispute that has taken the grant back.
    reversed_by text,
    primary key (app_id, config, sale_id),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index card_sales_by_intent on card_sales (app_id, config, intent_id);
