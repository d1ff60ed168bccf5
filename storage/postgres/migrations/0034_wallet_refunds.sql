-- The platform may accept a refund, and make it later or not at all: it is `accepted` until that is known.
alter table wallet_refunds drop constraint wallet_refunds_state_check;
alter table wallet_refunds add constraint wallet_refunds_state_check
    check (state in ('pending', 'accepted', 'done', 'failed'));

-- Each config has a job of its own that reads back what is due.
drop index wallet_orders_to_check;
drop index wallet_subscriptions_to_check;
create index wallet_orders_to_check on wallet_orders (app_id, config, check_at) where check_at is not null;
create index wallet_subscriptions_to_check on wallet_subscriptions (app_id, config, check_at)
    where check_at is not null;
