-- The tries of a code are counted per network, so that nobody can use up those of its owner. `tries` is not used any
-- more.
alter table codes
    -- How many wrong codes were entered, by the network of the caller.
    add column wrong jsonb not null default '{}';
