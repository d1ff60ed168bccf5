-- Passwords of users, the networks from which they logged in by password, and codes that are sent to prove who
-- receives what is sent to an address or a phone number. Times are those of the app.

create table passwords (
    app_id text not null,
    uid text not null,
    -- The PHC string of argon2id, which includes the salt and the parameters.
    hash text not null,
    changed_at timestamptz not null,
    primary key (app_id, uid),
    foreign key (app_id, uid) references users (app_id, uid)
);

create table login_networks (
    app_id text not null,
    uid text not null,
    network text not null,
    last_used_at timestamptz not null,
    primary key (app_id, uid, network),
    foreign key (app_id, uid) references users (app_id, uid)
);

create table codes (
    code_id text primary key,
    app_id text not null,
    kind text not null,
    -- The normalised address, or the phone number in E.164.
    target text not null,
    -- The user that the code was made for, if one was known.
    uid text,
    -- An HMAC of the code.
    digest bytea not null,
    tries integer not null default 0,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    -- When the code was used or revoked.
    closed_at timestamptz
);

create index codes_by_target on codes (app_id, target, code_id);
create index codes_by_digest on codes (digest);
create index codes_by_user on codes (app_id, uid);
create index codes_by_expiry on codes (app_id, expires_at);
