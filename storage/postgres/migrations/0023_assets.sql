-- What users own. Rows of `asset_entries` are only added, one for each event; `assets` follows from them.

create table asset_entries (
    entry_id bigint generated always as identity primary key,
    app_id text not null,
    uid text not null,
    -- The event, such as the id of a payment. It is entered once.
    key text not null,
    kind text not null check (kind in ('grant', 'refund', 'end', 'cancel', 'resume', 'adjust')),
    name text not null,
    -- The platform's id of the subscription to which the asset belongs, and empty for assets of other types.
    subscription text not null,
    type text not null check (type in ('consumable', 'nonconsumable', 'subscription')),
    quantity bigint not null,
    starts_at timestamptz,
    ends_at timestamptz,
    platform text not null,
    product_id text not null,
    bp_product_id text not null,
    receipt_id text not null,
    origin text not null,
    -- What reported the event first: a webhook, a call of the client, the reconciliation or an operator.
    channel text not null,
    is_trial boolean not null,
    renews boolean not null,
    entered_at timestamptz not null,
    foreign key (app_id, uid) references users (app_id, uid)
);

create unique index asset_entries_by_key on asset_entries (app_id, key);
create index asset_entries_by_user on asset_entries (app_id, uid, entry_id);

-- This stops mistakes and injected SQL. The owner of the table can still remove the triggers.
create function refuse_asset_entry_change() returns trigger language plpgsql as $$
begin
    raise exception 'rows of asset_entries are append-only: add an entry that corrects them';
end
$$;

create trigger asset_entries_are_append_only before update or delete on asset_entries
    for each row execute function refuse_asset_entry_change();
create trigger asset_entries_are_not_truncated before truncate on asset_entries
    for each statement execute function refuse_asset_entry_change();

create table assets (
    app_id text not null,
    uid text not null,
    name text not null,
    subscription text not null,
    type text not null,
    quantity bigint not null check (quantity >= 0),
    total_quantity bigint not null,
    starts_at timestamptz,
    -- The end of the last period that was paid, and when the asset ended before it.
    paid_ends_at timestamptz,
    ended_at timestamptz,
    custom_ends_at timestamptz,
    platform text not null,
    product_id text not null,
    bp_product_id text not null,
    receipt_id text not null,
    origin text not null,
    is_trial boolean not null,
    renews boolean not null,
    canceled_at timestamptz,
    refunded_at timestamptz,
    primary key (app_id, uid, name, subscription),
    foreign key (app_id, uid) references users (app_id, uid)
);
