-- Requests under an `Idempotency-Key`, and the responses to those that have succeeded.

create table idempotency_keys (
    app_id text not null,
    -- SHA-256 of the caller, the endpoint and the key.
    digest text not null,
    -- SHA-256 of the input.
    fingerprint text not null,
    operation_id text not null,
    created_at timestamptz not null default now(),
    -- When the call that works under the key began, or -infinity if it has failed. A call proves by it that it still
    -- has the key.
    claimed_at timestamptz not null default now(),
    -- Null until the call has succeeded.
    answered_at timestamptz,
    status smallint,
    headers jsonb,
    -- Null if the response has no body, or if it was too large to be kept.
    body bytea,
    too_large boolean not null default false,
    primary key (app_id, digest)
);

create index idempotency_keys_by_age on idempotency_keys (created_at);
