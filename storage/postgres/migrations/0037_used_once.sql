-- What may be used only once, and is remembered here because Valkey may lose it. A value is forgotten when it could not
-- be used any more.

create table used_once (
    app_id text not null,
    what text not null,
    digest text not null,
    expires_at timestamptz not null,
    primary key (app_id, what, digest)
);

create index used_once_by_age on used_once (app_id, expires_at);
