-- Scores of leaderboards, by period. They are the truth: the index in Valkey is built from them.

-- Numbers the changes of scores. Of two equal scores, the one with the lower number came first.
create sequence leaderboard_changes;

create table leaderboard_periods (
    period_id bigint generated always as identity primary key,
    app_id text not null,
    board text not null,
    -- Times of the app. Null: the board is never reset.
    starts_at timestamptz not null,
    ends_at timestamptz,
    descending boolean not null,
    -- `rewarding`: the winners are stored, and get their rewards.
    state text not null default 'open' check (state in ('open', 'rewarding', 'closed')),
    -- When the winners were stored.
    closed_at timestamptz,
    -- When all rewards were granted. Null: not yet, or there are none.
    rewarded_at timestamptz,
    -- The changes up to this number are known to be in the index.
    checked_change bigint not null default 0
);

create unique index leaderboard_periods_by_start on leaderboard_periods (app_id, board, starts_at);
create index leaderboard_periods_not_closed on leaderboard_periods (app_id, board) where state <> 'closed';
create index leaderboard_periods_rewarded on leaderboard_periods (app_id, board, rewarded_at)
    where rewarded_at is not null;

create table leaderboard_scores (
    period_id bigint not null references leaderboard_periods,
    app_id text not null,
    uid text not null,
    score double precision not null,
    change bigint not null,
    -- JSON as it was sent.
    extra text,
    -- When the score was reached. An equal score later does not change it.
    posted_at timestamptz not null,
    primary key (period_id, uid),
    foreign key (app_id, uid) references users (app_id, uid)
);

create index leaderboard_scores_by_rank on leaderboard_scores (period_id, score, change);
create index leaderboard_scores_by_change on leaderboard_scores (period_id, change);
create index leaderboard_scores_by_user on leaderboard_scores (app_id, uid);

-- The winners of a period, as they were when it ended.
create table leaderboard_rewards (
    period_id bigint not null references leaderboard_periods,
    app_id text not null,
    uid text not null,
    rank bigint not null,
    score double precision not null,
    product text not null,
    granted_at timestamptz,
    primary key (period_id, uid),
    foreign key (app_id, uid) references users (app_id, uid)
);

create unique index leaderboard_rewards_by_rank on leaderboard_rewards (period_id, rank);

-- Store a score in the period of this moment, which is the last of `may_begin_at` that has begun.
--
-- Uploads share a lock of the board, and the end of a period takes it alone. The time is read under the lock, so
-- an upload is stored before the winners of its period are read, or it belongs to the next period.
-- A board with rewards accepts no score from the end of a period until 10 minutes after the last reward.
create function upload_score(
    of_app text,
    of_board text,
    of_user text,
    new_score double precision,
    new_extra text,
    may_begin_at timestamptz[],
    is_descending boolean,
    has_rewards boolean,
    offset_s double precision,
    out uploaded_at timestamptz,
    out began_at timestamptz,
    out change bigint,
    out unlocked_at timestamptz
) language plpgsql as $$
declare
    found_id bigint;
begin
    perform pg_advisory_xact_lock_shared(36, hashtext(of_app || '/' || of_board));
    uploaded_at := clock_timestamp() + make_interval(secs => offset_s);

    select max(until) into unlocked_at from (
        select least(rewarded_at + interval '10 minutes', closed_at + interval '60 minutes') as until
        from leaderboard_periods
        where app_id = of_app and board = of_board
            and rewarded_at > uploaded_at - interval '10 minutes' and rewarded_at <= uploaded_at
        union all
        select coalesce(closed_at, ends_at) + interval '60 minutes'
        from leaderboard_periods
        where app_id = of_app and board = of_board and state <> 'closed'
            and coalesce(closed_at, ends_at) <= uploaded_at and (state = 'rewarding' or has_rewards)
    ) locks where until > uploaded_at;
    if unlocked_at is not null then
        return;
    end if;

    select coalesce(max(start), may_begin_at[1]) into began_at
    from unnest(may_begin_at) start where start <= uploaded_at;
    loop
        select period_id into found_id from leaderboard_periods
        where app_id = of_app and board = of_board and starts_at = began_at;
        exit when found;
        insert into leaderboard_periods (app_id, board, starts_at, ends_at, descending)
        values (of_app, of_board, began_at,
            (select min(start) from unnest(may_begin_at) start where start > began_at), is_descending)
        on conflict do nothing;
    end loop;

    insert into leaderboard_scores as stored (period_id, app_id, uid, score, change, extra, posted_at)
    values (found_id, of_app, of_user, new_score, nextval('leaderboard_changes'), new_extra, uploaded_at)
    on conflict (period_id, uid) do update set
        score = excluded.score,
        extra = excluded.extra,
        posted_at = case when stored.score = excluded.score then stored.posted_at else excluded.posted_at end,
        -- Not that of `excluded`, which was taken before the row was locked: numbers follow the order of changes.
        change = case when stored.score = excluded.score then stored.change else nextval('leaderboard_changes') end
    returning stored.change into change;
end
$$;
