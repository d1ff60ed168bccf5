-- The plan to which a subscription was changed at the platform last, and since when that is known: later payments are
-- of this plan. Empty and null: it has not changed.
alter table wallet_subscriptions add column changed_plan_id text not null default '', add column changed_at timestamptz;
