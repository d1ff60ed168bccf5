-- Postcards of users. Times are those of the app.

create table postcards (
    postcard_id text primary key,
    app_id text not null,
    uid text not null,
    design text not null,
    text text not null,
    -- The printer's id. Null until the postcard is ordered.
    order_id text,
    created_at timestamptz not null,
    posted_at timestamptz,
    foreign key (app_id, uid) references users (app_id, uid)
);

create index postcards_by_user on postcards (app_id, uid, postcard_id);
