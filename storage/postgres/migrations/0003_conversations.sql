create table conversations (
    app_id text not null,
    conversation_id text not null,
    uid text not null,
    last_record_id integer not null default 0,
    record_count integer not null default 0,
    record_token bigint not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (app_id, conversation_id)
);

create table conversation_records (
    app_id text not null,
    conversation_id text not null,
    record_id integer not null,
    status text not null check (status in ('running', 'complete', 'incomplete', 'interrupted', 'failed')),
    strategy text not null default '',
    content jsonb not null,
    input_token integer not null default 0,
    output_token integer not null default 0,
    tokens_estimated boolean not null default false,
    stream_id text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (app_id, conversation_id, record_id),
    foreign key (app_id, conversation_id) references conversations on delete cascade
);

-- one turn at a time, whatever else fails
create unique index conversation_records_running
    on conversation_records (app_id, conversation_id) where status = 'running';
