-- Bans of users by operators. Times are those of the app.
alter table users
    -- When the user was banned. Null: the user is not banned.
    add column banned_at timestamptz,
    -- When the ban ends. Null: it has no end.
    add column ban_ends_at timestamptz,
    add column ban_reason text not null default '';

-- The identities of banned users who were deactivated. Nobody can use them for a new account until the ban ends, which
-- the row of the user says.
create table banned_identities (
    app_id text not null,
    -- HMAC-SHA256 of the identity, with a key derived from the master key.
    digest bytea not null,
    uid text not null,
    primary key (app_id, digest),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index banned_identities_by_user on banned_identities (app_id, uid);
