-- Why jobs are held. A job that the previous version has held has no row.
create table job_failures (
    job_id bigint primary key references procrastinate_jobs (id) on delete cascade,
    error_type text not null,
    message text not null,
    -- Failures of a kind of job for the same reason, whatever ids and numbers the message names.
    error_group text not null,
    -- The process that made the last attempt. Empty: it has died.
    process text not null,
    -- The configs that the attempt has read last, the newest at the end: [[app, kind, name], …].
    configs jsonb not null,
    failed_at timestamptz not null default now()
);

-- The jobs that workers enqueue at fixed times, as the worker that started last has them.
create table job_schedules (
    task text primary key,
    -- In cron's format and UTC. A sixth field contains seconds.
    schedule text not null
);

alter table payment_mismatches
    -- When an operator has settled the case, who, and how.
    add column resolved_at timestamptz,
    add column resolved_by text,
    add column resolution text;
