-- Server processes that run, by the database's clock: a process is dead only when Valkey and this table agree.
create table processes (
    process text primary key,
    seen_at timestamptz not null default now()
);
