-- A text that is encrypted with the master key of this deployment, so that a process with another key notices it.
create table master_key (
    -- There is one row.
    only_row boolean primary key default true check (only_row),
    encrypted text not null
);
