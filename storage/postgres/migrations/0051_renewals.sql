-- Subscriptions last until the platform has billed their next period. `extend` moves that end; in a grant, it stands beside
-- that of the paid period.
alter table asset_entries add column grace_ends_at timestamptz;
alter table asset_entries drop constraint asset_entries_kind_check;
alter table asset_entries add constraint asset_entries_kind_check
    check (kind in (
        'grant', 'refund', 'restore', 'consume', 'return', 'end', 'cancel', 'suspend', 'resume', 'extend', 'adjust'));

-- When a subscription that is paid is read back. Those that exist are read a day before they renew.
alter table card_subscriptions add column check_at timestamptz;
update card_subscriptions set check_at = period_ends_at - interval '1 day' where status in ('trialing', 'active');

-- As for cards: the number of reads that were begun, and that of the last one that was applied.
alter table wallet_subscriptions
    add column reads bigint not null default 0, add column applied_read bigint not null default 0;
-- Each is read every day. The next read, which extends its asset, is at once.
update wallet_subscriptions set check_at = check_at - interval '1 day' where status = 'ACTIVE';
