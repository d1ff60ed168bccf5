-- One row for each try of a strategy: what became of it and what it used.
create table attempts (
    app_id text not null,
    stream_id text not null,
    number integer not null,
    uid text not null,
    stage text not null check (stage in ('stt', 'llm', 'tts', 'assess')),
    strategy text not null,
    vendor text not null,
    outcome text not null check (outcome in ('won', 'failed', 'hedged', 'canceled')),
    message text not null default '',
    first_output_ms integer,
    elapsed_ms integer not null,
    input_unit bigint not null,
    output_unit bigint not null,
    price numeric not null,
    usage_source text not null check (usage_source in ('vendor', 'estimated')),
    created_at timestamptz not null default now(),
    primary key (app_id, stream_id, number)
);

create index attempts_by_time on attempts (app_id, created_at);
