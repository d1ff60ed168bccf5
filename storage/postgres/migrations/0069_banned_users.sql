-- no-transaction
create index concurrently users_banned on users (app_id, uid) where banned_at is not null;
