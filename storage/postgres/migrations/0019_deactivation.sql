-- What was deleted when users were deactivated, and the revocation of their tokens at sign-in platforms. Times are
-- those of the app.

create table erasures (
    app_id text not null,
    uid text not null,
    cause text not null check (cause in ('confirm', 'freeze_end')),
    deactivated_at timestamptz not null,
    -- How many rows and files were deleted, by what they are.
    deleted jsonb not null,
    -- Null until everything that the user has stored is deleted.
    erased_at timestamptz,
    primary key (app_id, uid),
    foreign key (app_id, uid) references users (app_id, uid)
);

create table revocations (
    app_id text not null,
    uid text not null,
    platform text not null,
    -- The token, encrypted with the master key, until it is revoked. Null if there is none.
    token text,
    state text not null check (state in ('pending', 'revoked', 'unsupported', 'no_token')),
    settled_at timestamptz,
    primary key (app_id, uid, platform),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index login_failures_by_user on login_failures (app_id, uid);
