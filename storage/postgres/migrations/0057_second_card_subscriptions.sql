alter table card_subscriptions
    -- When it is to end. If that is after the current period, it is billed until then, although it is cancelled.
    add column cancel_at timestamptz,
    -- When it became active although the user had another live subscription to its product. It is cancelled, and what
    -- is paid from then on is refunded.
    add column superseded_at timestamptz;
