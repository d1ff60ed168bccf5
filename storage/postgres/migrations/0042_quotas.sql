-- What calls to vendors have used of the quotas of users: free units of a day, and units of assets by the ledger.
create table quota_uses (
    app_id text not null,
    key text not null,
    uid text not null,
    asset text not null,
    free_units bigint not null check (free_units >= 0),
    entry_keys text[] not null,
    used_at timestamptz not null,
    returned_at timestamptz,
    primary key (app_id, key),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index quota_uses_by_user on quota_uses (app_id, uid, asset, used_at);

-- How many units of an asset a user has used is the sum of these.
create index asset_entries_uses on asset_entries (app_id, uid, name) include (subscription, kind, quantity)
where kind in ('consume', 'return');
