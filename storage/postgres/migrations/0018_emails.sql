-- Email addresses of users. The address with which a user logs in is an identity of the platform `email`, which is
-- trusted once the address is proven. An address that is bound or replaces another one waits here until then.

alter table identities
    -- When an address was proven, if that was after the identity was created.
    add column verified_at timestamptz;

create table pending_emails (
    app_id text not null,
    uid text not null,
    address text not null,
    created_at timestamptz not null,
    primary key (app_id, uid),
    foreign key (app_id, uid) references users (app_id, uid)
);
