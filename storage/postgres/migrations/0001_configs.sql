-- Named configs of all apps. Every change is a new revision; none is ever altered.
create table config_revisions (
    app_id text not null,
    kind text not null,
    name text not null,
    revision integer not null,
    -- Null in the revision that deletes the config. A secret reads {"secret": true}.
    value jsonb,
    -- Sealed secrets by their place in the value (JSON Pointer).
    secrets jsonb not null default '{}',
    author text not null,
    comment text not null,
    created_at timestamptz not null default now(),
    primary key (app_id, kind, name, revision)
);

-- The newest revision of each config, which is the active one unless it deletes.
create table configs (
    app_id text not null,
    kind text not null,
    name text not null,
    revision integer not null,
    change bigint not null,
    primary key (app_id, kind, name),
    foreign key (app_id, kind, name, revision) references config_revisions
);
create unique index configs_change on configs (change);

-- Numbers the changes. Its only row is locked by whoever writes configs, so numbers appear in their order
-- and a reader that asks for what came after the last one misses nothing.
create table config_changes (
    one boolean primary key default true check (one),
    change bigint not null
);
insert into config_changes (change) values (0);

create view newest_configs as
    select r.*, c.change from configs c join config_revisions r using (app_id, kind, name, revision);
