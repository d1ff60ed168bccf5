-- Up to where the list of events of each payment platform was compared with the webhooks that have arrived.
create table event_cursors (
    app_id text not null,
    -- The kind of the config, which is the source of its webhooks.
    kind text not null,
    config text not null,
    -- By the platform's clock.
    compared_at timestamptz not null,
    primary key (app_id, kind, config)
);

insert into event_cursors (app_id, kind, config, compared_at)
select app_id, 'cardpay', config, read_at from card_event_cursors
union all
select app_id, 'walletpay', config, compared_at from wallet_event_cursors;

drop table card_event_cursors;
drop table wallet_event_cursors;
