-- How often the amount of a refund was reduced, because a part of the payment was refunded at the platform. Each amount
-- has a key of its own.
alter table wallet_refunds add column reductions integer not null default 0;
