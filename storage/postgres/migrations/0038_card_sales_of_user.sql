-- The receipt of a deactivated user counts them.
create index card_sales_by_user on card_sales (app_id, uid);
