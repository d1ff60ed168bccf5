-- no-transaction
-- The primary key of a partitioned table contains the column by which it is partitioned.
create unique index concurrently audit_by_id_and_time on audit (audit_id, changed_at);
