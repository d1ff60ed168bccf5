-- Emails that apps send by their strategies, and the addresses that get none of them.

create table mails (
    -- The message id: that of the pixel, and the first part of the header `Message-ID`.
    mail_id text primary key,
    app_id text not null,
    uid text not null,
    -- The name of the config of kind `mail`.
    strategy text not null,
    -- A keyed hash of the address.
    recipient text not null,
    -- Whether opens are reported.
    tracked boolean not null,
    -- `sending` until the first attempt has ended, then `waiting` for further ones. The others are final: `refused` by
    -- the mail server of the recipient, `suppressed` because the address gets no emails of the strategy.
    status text not null check (status in ('sending', 'waiting', 'sent', 'refused', 'suppressed')),
    -- The job that sends it.
    job_id bigint not null,
    -- Times of the app.
    created_at timestamptz not null,
    sent_at timestamptz,
    -- How often the pixel was fetched by readers, and by programs.
    opens integer not null default 0,
    machine_opens integer not null default 0,
    foreign key (app_id, uid) references users (app_id, uid)
);

create unique index mails_sending on mails (app_id, uid, strategy) where status = 'sending';
create index mails_by_user on mails (app_id, uid);
create index mails_by_time on mails (app_id, created_at);

create table suppressions (
    app_id text not null,
    -- A normalized address.
    address text not null,
    -- Empty: all strategies.
    strategy text not null,
    reason text not null check (reason in ('unsubscribed', 'operator')),
    created_at timestamptz not null,
    primary key (app_id, address, strategy)
);
