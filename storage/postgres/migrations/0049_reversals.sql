-- What takes a payment back: its refunds, reversals and disputes, as the platform reports them. Which part of the
-- grant is taken back follows from these rows, whatever the order in which they were reported.
create table payment_reversals (
    app_id text not null,
    platform text not null,
    -- A capture or a sale of the wallet, or the intent of a card.
    payment_id text not null,
    -- The refund or the dispute. The payment itself, if it is refunded by something that the platform has not named.
    reversal_id text not null,
    kind text not null check (kind in ('refund', 'reversal', 'dispute')),
    -- Null: all of the payment.
    amount bigint,
    currency text,
    state text not null check (state in ('open', 'taken', 'undone', 'closed')),
    -- When it began, by the platform.
    happened_at timestamptz not null,
    -- Orders the states of a reversal: an older state that is read late does not replace a newer one.
    version bigint not null,
    primary key (app_id, platform, payment_id, reversal_id)
);

-- The grant that a `refund` or a `restore` is about, and when its event happened at the platform.
alter table asset_entries add column reverses text not null default '', add column happened_at timestamptz;

update asset_entries reversal set reverses = granted.key
from asset_entries granted
where reversal.kind in ('refund', 'restore') and granted.kind = 'grant' and granted.app_id = reversal.app_id
    and granted.uid = reversal.uid and granted.receipt_id = reversal.receipt_id
    and granted.platform = reversal.platform
    and granted.key in (
        'card:' || reversal.receipt_id,
        'wallet:capture:' || split_part(reversal.key, ':', 2), 'wallet:sale:' || split_part(reversal.key, ':', 2));

create index asset_entries_by_reversed on asset_entries (app_id, reverses) where reverses <> '';

-- Refunds that the platform has reported are there from now on. The previous version still stores them in
-- `wallet_refunds`, as not `ours`. Those that we make may be of an order, too.
insert into payment_reversals
    (app_id, platform, payment_id, reversal_id, kind, amount, currency, state, happened_at, version)
select app_id, 'walletpay', sale_id, refund_id, 'refund', amount, currency, 'taken', created_at, 0
from wallet_refunds where not ours and refund_id is not null
on conflict do nothing;

alter table wallet_refunds alter column ours set default true;
alter table wallet_refunds alter column subscription_row drop not null;
alter table wallet_refunds add column order_row text references wallet_orders (row_id);
alter table wallet_refunds add constraint wallet_refunds_of_one check (num_nonnulls(subscription_row, order_row) = 1);
create index wallet_refunds_by_order on wallet_refunds (order_row) where order_row is not null;

-- Paid orders, and subscriptions that have ended, are read once a day for 180 days, in case a reversal was not
-- reported.
update wallet_orders set check_at = newest.at + random() * interval '1 day'
from (select max(created_at) as at from wallet_orders) newest
where status = 'COMPLETED' and created_at > newest.at - interval '180 days';
update wallet_subscriptions set check_at = newest.at + random() * interval '1 day'
from (select max(created_at) as at from wallet_subscriptions) newest
where status in ('CANCELLED', 'EXPIRED') and check_at is null and subscription_id is not null
    and activated_at is not null;
