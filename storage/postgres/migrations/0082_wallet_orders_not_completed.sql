-- no-transaction
-- Orders with a status that few have. A page of them must not read all that were completed.
create index concurrently wallet_orders_not_completed on wallet_orders (status, row_id) where status <> 'COMPLETED';
