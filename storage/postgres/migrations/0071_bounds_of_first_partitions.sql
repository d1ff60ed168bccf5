-- `attempts` and `audit` become tables with a partition for each month (0075), so that old rows are dropped with their
-- partition instead of being deleted. The rows until the end of the next month stay together in a first partition: the
-- tables as they are. These constraints prove that, so that no row is read while the tables are locked.
--
-- The ids of streams begin with the milliseconds of their creation.
do $$
declare
    ends_at timestamptz := (date_trunc('month', now() at time zone 'UTC') + interval '2 months') at time zone 'UTC';
begin
    execute format(
        'alter table attempts add constraint attempts_of_first_partition check (stream_id < %L) not valid',
        lpad(to_hex(extract(epoch from ends_at)::bigint * 1000), 12, '0'));
    execute format(
        'alter table audit add constraint audit_of_first_partition check (changed_at < %L) not valid', ends_at);
end
$$;
