-- Withdrawals, which a platform pays out. Rows of `withdrawal_entries` are only added: what was reserved for each
-- user, and what became of it. The states of `withdrawals` follow from them.

create table withdrawals (
    withdrawal_id text primary key,
    app_id text not null,
    uid text not null,
    -- The id that the app gave it, and the request that it came with.
    app_withdraw_id text not null,
    request jsonb not null,
    config text not null,
    platform text not null,
    merchant_id text not null,
    amount bigint not null check (amount > 0),
    currency text not null,
    -- The address of the receiver. Null once the user was deactivated.
    receiver text,
    status text not null check (status in ('START', 'SUCCESS', 'FAILED')),
    reason text not null,
    -- The platform's id of the payout. Empty: it is not known yet.
    payout_id text not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    -- When the platform was first asked to pay. It remembers our id from then on for 30 days.
    submitted_at timestamptz,
    paid_at timestamptz,
    -- When to ask the platform again. Null: the withdrawal has ended.
    check_at timestamptz,
    foreign key (app_id, uid) references users (app_id, uid)
);

create unique index withdrawals_by_app_id on withdrawals (app_id, app_withdraw_id);
create index withdrawals_by_user on withdrawals (app_id, uid, created_at desc);
create index withdrawals_by_payout on withdrawals (app_id, payout_id) where payout_id <> '';
create index withdrawals_open on withdrawals (check_at) where check_at is not null;

create table withdrawal_entries (
    entry_id bigint generated always as identity primary key,
    withdrawal_id text not null references withdrawals,
    app_id text not null,
    uid text not null,
    -- `reserve` at the start, then `pay` or `void`, and `return` if what was paid came back later.
    kind text not null check (kind in ('reserve', 'pay', 'void', 'return')),
    config text not null,
    amount bigint not null check (amount > 0),
    currency text not null,
    entered_at timestamptz not null
);

create unique index withdrawal_entries_by_kind on withdrawal_entries (withdrawal_id, kind);
-- A reservation ends once.
create unique index withdrawal_entries_of_end on withdrawal_entries (withdrawal_id) where kind in ('pay', 'void');
create index withdrawal_entries_by_user on withdrawal_entries (app_id, uid, entered_at);

create trigger withdrawal_entries_are_append_only before update or delete on withdrawal_entries
    for each row execute function refuse_asset_entry_change();
create trigger withdrawal_entries_are_not_truncated before truncate on withdrawal_entries
    for each statement execute function refuse_asset_entry_change();
