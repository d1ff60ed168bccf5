-- Predictions of users at model hosts, and the files of such tasks: those that users upload, and those that hosts make.
create table task_files (
    file_key text primary key,
    app_id text not null,
    uid text not null,
    created_at timestamptz not null,
    foreign key (app_id, uid) references users (app_id, uid)
);

create index task_files_by_user on task_files (app_id, uid);
create index task_files_by_age on task_files (app_id, created_at);

create table predictions (
    prediction_id text primary key,
    app_id text not null,
    uid text not null,
    strategy text not null,
    account text not null,
    model text,
    body text not null,
    is_awaited boolean not null,
    host_id text,
    status text not null default 'starting'
        check (status in ('starting', 'processing', 'succeeded', 'failed', 'canceled')),
    output text,
    file_keys text[] not null default '{}',
    error text not null default '',
    created_at timestamptz not null,
    asked_at timestamptz,
    ended_at timestamptz,
    check ((ended_at is null) = (status in ('starting', 'processing'))),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index predictions_by_user on predictions (app_id, uid, prediction_id);
create index predictions_by_age on predictions (app_id, created_at);
create unique index predictions_by_host_id on predictions (app_id, account, host_id) where host_id is not null;
