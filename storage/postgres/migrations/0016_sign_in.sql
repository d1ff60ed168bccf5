-- What sign-in platforms tell about identities, tokens for logins without a new authorization, and failed logins.

alter table identities
    add column openid text not null default '',
    add column xid text not null default '',
    -- Encrypted with the master key.
    add column access_token text not null default '',
    add column refresh_token text not null default '',
    -- Unix seconds at which the access token expires, or 0.
    add column expiration_date bigint not null default 0,
    -- Whether the identity was proven, or only the client says so.
    add column trust text not null default 'client' check (trust in ('proven', 'client')),
    add column profile jsonb;

-- A user has at most one identity of each platform.
drop index identities_of_user;
create unique index identities_of_user on identities (app_id, uid, platform);

-- Where a session was made, so that its user recognises it.
alter table sessions
    add column client_os text not null default '',
    add column user_agent text not null default '',
    add column address text not null default '';

create table bp_auth_tokens (
    -- SHA-256 of the token. The token is not stored.
    digest text primary key,
    app_id text not null,
    -- The identity that the token logs in. It may have no user yet.
    platform text not null,
    social_id text not null,
    trust text not null check (trust in ('proven', 'client')),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    used_at timestamptz
);

create index bp_auth_tokens_of_identity on bp_auth_tokens (app_id, platform, social_id);
create index bp_auth_tokens_by_age on bp_auth_tokens (app_id, expires_at);

-- Failed logins and binds with the steps that led to the failure, for support.
create table login_failures (
    failure_id text primary key,
    app_id text not null,
    request_id text not null,
    operation text not null,
    platform text not null,
    -- The id that the client claims or has proven, as far as it is known.
    social_id text not null,
    uid text,
    error_type text not null,
    steps jsonb not null,
    failed_at timestamptz not null
);

create index login_failures_by_request on login_failures (app_id, request_id);
create index login_failures_by_identity on login_failures (app_id, platform, social_id);
create index login_failures_by_age on login_failures (app_id, failed_at);
