-- Each paid payment is a sale, also if it has granted nothing: its refund is reported too.

alter table card_sales
    -- The platform's id of the subscription whose invoice it is.
    add column subscription_id text,
    -- The product, as the service names it.
    add column product_id text,
    -- The last refund that has failed, or dispute that was won. A read from before that must not apply it again.
    add column failed_reversal text;

update card_sales
set subscription_id = nullif(entry.subscription, ''), product_id = nullif(entry.bp_product_id, '')
from asset_entries entry where entry.app_id = card_sales.app_id and entry.key = 'card:' || card_sales.sale_id;

insert into card_sales (app_id, config, sale_id, uid, intent_id, product_id)
select app_id, config, intent_id, uid, intent_id, product_id from card_payments
where status = 'succeeded' and intent_id is not null
on conflict do nothing;
