-- By how many seconds the time of an app differs from real time. Only development servers read and write it.
create table app_clocks (
    app_id text primary key,
    offset_s double precision not null
);
