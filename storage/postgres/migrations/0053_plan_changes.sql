-- The plans to which a subscription was changed at the platform, in the order of the changes, each with the time after
-- which payments are of this plan: [{"plan_id", "since"}]. It replaces the columns changed_plan_id and changed_at, which
-- the previous version still uses.
alter table wallet_subscriptions add column plan_changes jsonb not null default '[]';
update wallet_subscriptions
set plan_changes = jsonb_build_array(jsonb_build_object('plan_id', changed_plan_id, 'since', changed_at))
where changed_plan_id <> '' and changed_at is not null;
