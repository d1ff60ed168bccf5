-- Refunds of payments with a card that we make, because the account of their user was closed. The id of the row is part
-- of the key of the call.
create table card_refunds (
    row_id text primary key,
    app_id text not null,
    config text not null,
    -- The payment or invoice.
    sale_id text not null,
    intent_id text not null,
    amount bigint not null,
    currency text not null,
    state text not null check (state in ('pending', 'made', 'failed')),
    refund_id text,
    problem text not null default '',
    created_at timestamptz not null,
    unique (app_id, config, sale_id)
);
