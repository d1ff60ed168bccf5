-- Withdrawals in progress whose result the platform does not know any more, and what operators have settled.
alter table withdrawals
    -- Since when the result is unknown. Null: the platform can be asked, or the withdrawal has ended.
    add column unknown_at timestamptz,
    -- When an operator has said what became of it. Null: the platform has, or will.
    add column settled_at timestamptz;

update withdrawals w set unknown_at = m.found_at from payment_mismatches m
where m.kind = 'payout_unknown' and m.app_id = w.app_id and m.subject = w.withdrawal_id
    and w.status = 'START' and w.payout_id = '';

create index withdrawals_unknown on withdrawals (withdrawal_id) where unknown_at is not null;
