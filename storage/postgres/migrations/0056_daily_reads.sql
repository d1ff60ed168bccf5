-- Payments whose change is expected are read back before those that are only read once a day.
create index wallet_orders_changing on wallet_orders (app_id, config, check_at)
    where check_at is not null and status <> 'COMPLETED';
create index wallet_subscriptions_changing on wallet_subscriptions (app_id, config, check_at)
    where check_at is not null and status not in ('CANCELLED', 'EXPIRED');

-- An account of a platform may have events of other programs. Each is asked about once for each config that lists it.
create table foreign_events (
    app_id text not null,
    -- The config that has listed the event, and has not made its object.
    kind text not null,
    config text not null,
    event_id text not null,
    -- When the event happened. Once it is no longer listed, the row is deleted.
    happened_at timestamptz not null,
    primary key (app_id, kind, config, event_id)
);
