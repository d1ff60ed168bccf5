-- What the console searches and lists.
-- An index of `social_id` itself would be taken instead of the primary key until the table has statistics.
create index identities_by_social_id on identities (lower(social_id) text_pattern_ops);
create index users_not_active on users (app_id, status, uid) where status <> 'active';
create index audit_by_subject on audit (app_id, kind, name, audit_id);
create index card_payments_by_intent_in_all_apps on card_payments (intent_id);
create index card_subscriptions_by_id_in_all_apps on card_subscriptions (subscription_id);
create index card_sales_by_sale_in_all_apps on card_sales (sale_id);
create index wallet_orders_by_app on wallet_orders (app_id, row_id);
create index card_payments_by_app on card_payments (app_id, payment_id);
create index wallet_subscriptions_by_app on wallet_subscriptions (app_id, row_id);
create index card_subscriptions_by_app on card_subscriptions (app_id, row_id);
create index withdrawals_by_app on withdrawals (app_id, withdrawal_id);

-- An operator can deactivate a user.
alter table erasures drop constraint erasures_cause_check;
alter table erasures add constraint erasures_cause_check check (cause in ('confirm', 'freeze_end', 'operator'));
