-- Calls by platforms, as they were received, and the outcome of the work on them. Times are those of the app.

create table webhooks (
    webhook_id text primary key,
    app_id text not null,
    source text not null,
    config text not null,
    -- The platform's ids of the event and of its delivery, if it has such ids.
    event_id text,
    delivery_id text,
    headers jsonb not null,
    body bytea not null,
    received_at timestamptz not null,
    status text not null default 'received' check (status in ('received', 'done', 'failed')),
    -- Why the last attempt failed.
    error text,
    worked_at timestamptz,
    job_id bigint
);

create unique index webhooks_by_event on webhooks (app_id, source, config, event_id);
create unique index webhooks_by_delivery on webhooks (app_id, source, config, delivery_id);
create index webhooks_by_status on webhooks (status, webhook_id);
create index webhooks_by_age on webhooks (app_id, received_at);
