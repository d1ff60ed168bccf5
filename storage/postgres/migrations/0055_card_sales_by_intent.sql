-- An event names a payment, and not the config that has made it.
drop index card_sales_by_intent;
create index card_sales_by_intent on card_sales (app_id, intent_id);
