-- Events that are to be reported to a sink, one row for each event and sink. A row is deleted once the sink has the
-- event.

create table reported_events (
    -- The order in which events were stored.
    position bigint generated always as identity primary key,
    event_id text not null,
    app_id text not null,
    -- The name of the config of kind `events`.
    sink text not null,
    event text not null,
    uid text not null,
    -- The time of the app.
    happened_at timestamptz not null,
    data jsonb not null,
    attempts integer not null default 0,
    -- Why the last attempt failed.
    error text,
    -- Real times. The first is when the next attempt is due. `clock_timestamp`, because a transaction that has waited
    -- for the lock of a user began earlier than the one that it waited for.
    due_at timestamptz not null default clock_timestamp(),
    -- A worker delivers the event until then, unless the worker dies.
    claim_ends_at timestamptz,
    -- When the last of all attempts has failed.
    dead_at timestamptz
);

create index reported_events_due on reported_events (app_id, sink, due_at, position) where dead_at is null;
create index reported_events_claimed on reported_events (app_id, sink) where claim_ends_at is not null;
create index reported_events_dead on reported_events (app_id, sink, position) where dead_at is not null;
