-- no-transaction
-- Failed logins of one user, in the history of a user and in the list.
create index concurrently login_failures_by_user on login_failures (app_id, uid) where uid is not null;
