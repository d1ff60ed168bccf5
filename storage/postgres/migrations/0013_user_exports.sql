-- The last requested export of each user's data.
create table user_exports (
    app_id text not null,
    uid text not null,
    export_id text not null,
    requested_at timestamptz not null,
    -- Null while the file is being written.
    finished_at timestamptz,
    primary key (app_id, uid),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index user_exports_by_age on user_exports (app_id, finished_at);
