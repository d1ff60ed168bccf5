-- Users, the identities that they sign in with, and their sessions.

create table users (
    app_id text not null,
    uid text not null,
    status text not null default 'active' check (status in ('active', 'frozen', 'deactivated')),
    create_time timestamptz not null,
    last_login timestamptz not null,
    name text not null default '',
    cuid text not null default '',
    -- While frozen: when the freeze began, and when it ends in deactivation.
    freeze_time timestamptz,
    close_time timestamptz,
    primary key (app_id, uid),
    check (status <> 'frozen' or (freeze_time is not null and close_time is not null))
);

create table identities (
    app_id text not null,
    platform text not null,
    social_id text not null,
    uid text not null,
    create_time timestamptz not null,
    primary key (app_id, platform, social_id),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index identities_of_user on identities (app_id, uid);

create table sessions (
    app_id text not null,
    digest text not null,
    uid text not null,
    -- The identity that the session was made with: it ends when that one is unbound.
    platform text not null,
    social_id text not null,
    create_time timestamptz not null,
    last_seen timestamptz not null,
    expire_time timestamptz not null,
    revoke_time timestamptz,
    primary key (app_id, digest),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index sessions_of_user on sessions (app_id, uid, create_time desc);
