create table image_tasks (
    task_id text primary key,
    operation_id text not null unique,
    app_id text not null,
    uid text not null,
    strategy text not null,
    account text not null,
    type text not null,
    request jsonb not null,
    origin_task_id text,
    host_task_id text,
    status text not null,
    host_task jsonb,
    image_key text,
    created_at timestamptz not null,
    lost_at timestamptz not null,
    ended_at timestamptz,
    foreign key (app_id, uid) references users (app_id, uid)
);
create index image_tasks_of_user on image_tasks (app_id, uid, task_id);
create index image_tasks_running on image_tasks (app_id, uid) where ended_at is null;
create index image_tasks_by_age on image_tasks (app_id, created_at);
