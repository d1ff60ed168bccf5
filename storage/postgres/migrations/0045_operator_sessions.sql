-- The sessions of operators in the console, and the authenticators that they sign in with.
alter table operators
    -- Shared with the operator's authenticator (RFC 6238), encrypted with the master key.
    add column totp_secret text,
    add column totp_confirmed boolean not null default false,
    -- The time step of the last code that was used. Earlier codes are not accepted.
    add column totp_step bigint not null default 0;

create table operator_sessions (
    -- SHA-256 of the token, which only the cookie of the browser holds.
    digest text primary key,
    operator_id text not null references operators on delete cascade,
    created_at timestamptz not null default now(),
    -- Updated at most once a minute.
    used_at timestamptz not null default now()
);

create index operator_sessions_by_operator on operator_sessions (operator_id);
create index operator_sessions_by_age on operator_sessions (created_at);
