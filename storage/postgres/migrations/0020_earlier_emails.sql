-- Proven addresses that users had before, which the link "this was not me" can restore for some days.

create table earlier_emails (
    app_id text not null,
    uid text not null,
    address text not null,
    replaced_at timestamptz not null,
    primary key (app_id, uid, address),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index earlier_emails_by_age on earlier_emails (app_id, replaced_at);
