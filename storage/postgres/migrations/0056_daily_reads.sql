-- Payments whose change is expected are read back before those that are only read once a day.
create index wallet_orders_changing on wallet_orders (app_id, config, check_at)
    where check_at is not null and status <> 'COMPLETED';
create index wallet_subscriptions_changing on wallet_subscriptions (app_id, config, check_at)
    where check_at is not null and status not in ('CANCELLED', 'EXPIRED');
