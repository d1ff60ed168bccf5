-- Who may use the admin API, beside the holder of the root token.
create table operators (
    operator_id text primary key,
    name text not null unique,
    role text not null check (role in ('viewer', 'editor', 'admin')),
    -- SHA-256 of the token. The token is not stored.
    digest text not null unique,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    -- Updated at most once a minute.
    last_used_at timestamptz
);

-- One row for each change by an operator or a command.
create table audit (
    audit_id bigint generated always as identity primary key,
    changed_at timestamptz not null default now(),
    -- `root`, `command`, or the name that the operator had at the time.
    actor text not null,
    operator_id text,
    action text not null,
    app_id text,
    kind text not null,
    name text not null,
    before jsonb,
    after jsonb,
    reason text not null,
    request_id text not null,
    address text not null
);

create index audit_by_time on audit (changed_at);

-- Rows of audit are never altered, and only `delete_expired_audit` deletes them, if they are older than 30 days.
-- This stops mistakes and injected SQL. The owner of the table can still remove the triggers.
create function refuse_audit_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        if current_setting('parley.deletes_audit', true) = 'on' and old.changed_at < now() - interval '30 days' then
            return old;
        end if;
    end if;
    raise exception 'rows of audit are append-only: use delete_expired_audit to delete old ones';
end
$$;

create trigger audit_rows_are_append_only before update or delete on audit
    for each row execute function refuse_audit_change();
create trigger audit_is_append_only before truncate on audit
    for each statement execute function refuse_audit_change();

-- Deletes at most `most` rows that are older than `days` and older than 30 days. Returns their number.
create function delete_expired_audit(days integer, most integer) returns integer language plpgsql as $$
declare
    deleted integer;
begin
    perform set_config('parley.deletes_audit', 'on', true);
    delete from audit where audit_id in (
        select audit_id from audit where changed_at < now() - make_interval(days => greatest(days, 30)) order by changed_at limit most
    );
    get diagnostics deleted = row_count;
    perform set_config('parley.deletes_audit', '', true);
    return deleted;
end
$$;
