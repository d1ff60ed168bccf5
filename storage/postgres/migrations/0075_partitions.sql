-- The tables become the first partitions of new tables, which have their names and columns. This changes the catalog
-- only. The job `make_partitions` adds partitions ahead of time. A row that none of them takes is stored in the default
-- partition, so that no insert fails.

alter table attempts rename to attempts_first;
alter table attempts_first rename constraint attempts_pkey to attempts_first_pkey;
-- No statement uses it.
drop index attempts_by_time;

-- By the id of the stream instead of `created_at`, because it is part of the primary key: attempts are stored once,
-- however often this is repeated.
create table attempts (like attempts_first including defaults including constraints) partition by range (stream_id);
alter table attempts drop constraint attempts_of_first_partition;
alter table attempts add primary key (app_id, stream_id, number);
create table attempts_default partition of attempts default;

drop trigger audit_rows_are_append_only on audit;
drop trigger audit_is_append_only on audit;
alter table audit rename to audit_first;
alter table audit_first rename constraint audit_pkey to audit_by_id;
alter table audit_first drop constraint audit_by_id;
alter table audit_first alter column audit_id drop identity;
alter table audit_first add constraint audit_first_pkey primary key using index audit_by_id_and_time;
alter index audit_by_time rename to audit_first_by_time;
alter index audit_by_subject rename to audit_first_by_subject;

create sequence audit_ids as bigint;
create table audit (like audit_first including defaults including constraints) partition by range (changed_at);
alter table audit drop constraint audit_of_first_partition;
alter table audit alter column audit_id set default nextval('audit_ids');
alter table audit add primary key (audit_id, changed_at);
create index audit_by_time on audit (changed_at);
create index audit_by_subject on audit (app_id, kind, name, audit_id);
create table audit_default partition of audit default;

do $$
declare
    bound text;
begin
    select substring(pg_get_constraintdef(oid) from '''([^'']+)''') into bound
    from pg_constraint where conname = 'attempts_of_first_partition';
    execute format('alter table attempts attach partition attempts_first for values from (minvalue) to (%L)', bound);

    select substring(pg_get_constraintdef(oid) from '''([^'']+)''') into bound
    from pg_constraint where conname = 'audit_of_first_partition';
    execute format('alter table audit attach partition audit_first for values from (minvalue) to (%L)', bound);

    perform setval('audit_ids', coalesce((select max(audit_id) from audit_first), 0) + 1, false);
end
$$;

alter table attempts_first drop constraint attempts_of_first_partition;
alter table audit_first drop constraint audit_of_first_partition;

create trigger audit_rows_are_append_only before update or delete on audit
    for each row execute function refuse_audit_change();
create trigger audit_is_append_only before truncate on audit
    for each statement execute function refuse_audit_change();
create trigger audit_is_append_only before truncate on audit_first
    for each statement execute function refuse_audit_change();
create trigger audit_is_append_only before truncate on audit_default
    for each statement execute function refuse_audit_change();
