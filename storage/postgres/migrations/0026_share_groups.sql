-- Share groups: the owner of a subscription shares it with the members of a group, who join by its code.

create table share_groups (
    group_id text primary key,
    app_id text not null,
    -- The owner, and the asset that is shared.
    uid text not null,
    name text not null,
    subscription text not null,
    code text not null,
    -- Codes are found by their digest, so the time of a look-up says nothing about how much of a code is right.
    code_hash text not null,
    quota integer not null check (quota >= 0),
    created_at timestamptz not null,
    foreign key (app_id, uid) references users (app_id, uid)
);

create unique index share_groups_by_asset on share_groups (app_id, uid, name, subscription);
create unique index share_groups_by_code on share_groups (app_id, code_hash);

create table share_members (
    group_id text not null references share_groups (group_id) on delete cascade,
    app_id text not null,
    uid text not null,
    joined_at timestamptz not null,
    primary key (group_id, uid),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index share_members_by_user on share_members (app_id, uid);
