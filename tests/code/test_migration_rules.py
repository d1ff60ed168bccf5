"""No migration locks a table for long, and each rule of this check finds what it forbids."""

import pytest

from storage.postgres.migrate import FIRST_TIMED, MIGRATIONS, read_migrations
from tests.code.migration_rules import faults

_NEW = "in the first release that had the table"
BEFORE_THE_RULES = {
    "0005_conversations_by_user.sql": f"the index came {_NEW}",
    "0006_wide_tokens.sql": f"the type was changed {_NEW}",
    "0009_jobs.sql": "the schema of procrastinate, which creates its own tables and changes no others",
    "0010_expiry_of_conversations.sql": f"the index came {_NEW}",
    "0016_sign_in.sql": f"the columns and the index came {_NEW}",
    "0019_deactivation.sql": f"the index came {_NEW}",
    "0022_identities_of_user.sql": "the index had to be replaced at once: logins read all identities of a platform",
    "0029_event_cursors.sql": "both tables have one row for each config",
    "0033_card_sales.sql": f"sales were added {_NEW}",
    "0034_wallet_refunds.sql": f"the states and the indexes were changed {_NEW}",
    "0038_card_sales_of_user.sql": f"the index came {_NEW}",
    "0039_unknown_withdrawals.sql": f"the index came {_NEW}, and few withdrawals are unknown",
    "0041_ledger_entries.sql": "assets had to agree with their entries before the new version read them",
    "0042_quotas.sql": "quotas need the index from their first use on",
    "0046_predictions_of_hosts.sql": f"the index came {_NEW}",
    "0048_console.sql": "the console came before the first deployment with large tables",
    "0049_reversals.sql": "refunds had to be known before the new version read them",
    "0051_renewals.sql": "subscriptions had to be due before the new version read them",
    "0053_plan_changes.sql": "changed plans had to be known before the new version read them",
    "0055_card_sales_by_intent.sql": "it came before the first deployment with large tables",
    "0056_daily_reads.sql": "it came before the first deployment with large tables",
}
"""Files that break the rules, and why. They were applied before the rules existed, so they cannot be changed."""
REVIEWED = {
    "0071_bounds_of_first_partitions.sql": "the bounds depend on the date, and no row is read",
    "0074_key_of_audit.sql": "the table has no partitions before 0075",
    "0075_partitions.sql": "no row is read, and no index is built",
}
"""Files that are quick, as tests/storage/postgres/test_partitioning.py shows, although the rules refuse them."""


def test_no_migration_locks_a_table_for_long():
    found = {file.name: faults(file.sql) for file in read_migrations(MIGRATIONS)}
    broken, listed = {name for name in found if found[name]}, BEFORE_THE_RULES.keys() | REVIEWED.keys()

    assert {name: found[name] for name in broken - listed} == {}, "see `How to write a migration`"
    assert listed <= broken
    assert all(int(name[:4]) < FIRST_TIMED for name in BEFORE_THE_RULES)


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ("create index words_by_n on words (n)", "an index on words is built `concurrently`"),
        ("create unique index on words (n)", "an index on words is built `concurrently`"),
        ("create index concurrently words_by_n on words (n)", "`concurrently` needs the first line"),
        ("drop index words_by_n", "an index is dropped `concurrently`"),
        ("-- no-transaction\ncreate index words_by_n on words (n)", "may only build or drop an index concurrently"),
        ("-- no-transaction\ncreate index concurrently on words (n)", "an index needs a name"),
        ("-- no-transaction\ndrop index concurrently words_by_n", "needs `if exists`"),
        (
            "-- no-transaction\nalter table words add column m integer",
            "may only build or drop an index concurrently",
        ),
        (
            "-- no-transaction\ndrop index concurrently if exists a;\ndrop index concurrently if exists b",
            "has one statement",
        ),
        ("alter table words add check (n > 0)", "a constraint is added `not valid`"),
        ("alter table words add foreign key (n) references numbers (n)", "a constraint is added `not valid`"),
        ("alter table words add constraint w not null n", "a constraint is added `not valid`"),
        ("alter table words alter column n set not null", "`set not null` scans the table"),
        ("alter table words add unique (n)", "a key is added `using index`"),
        ("alter table words add exclude using gist (n with =)", "a constraint is added `not valid`"),
        ("alter table words validate constraint w", "a constraint is validated in a file of its own"),
        ("alter table words alter column n type bigint", "a new type rewrites the table"),
        ("alter table words add column m integer not null", "`not null` needs a default"),
        ("alter table words add column m uuid default gen_random_uuid()", "calls gen_random_uuid rewrites"),
        ("alter table words add column m float8 default 1 + random()", "calls random rewrites"),
        ("alter table words add column m integer check (m > 0)", "a check in `add column` scans"),
        ("alter table words add column m integer references numbers", "`references` in `add column` scans"),
        ("alter table words add column m integer unique", "builds an index while the table is locked"),
        ("alter table words add column m integer primary key", "builds an index while the table is locked"),
        ("alter table words add column m integer generated always as (n) stored", "a generated column rewrites"),
        ("alter table words add column m integer generated always as identity", "an identity column rewrites"),
        ("alter table words set unlogged", "AT_SetUnLogged is not known to be quick"),
        ("alter table words attach partition old default", "AT_AttachPartition is not known to be quick"),
        ("create table p partition of words for values in (1)", "`partition of` locks the whole table"),
        ("alter table words add column m bigserial", "a serial column rewrites"),
        ("alter table words add primary key using index words_by_n", "a primary key scans the table"),
        ("-- no-transaction\ncreate index concurrently i on attempts (number)", "on a table with partitions"),
        ("with gone as (delete from words) insert into numbers values (1)", "rows of words are changed by a job"),
        ("create table w (n integer); with gone as (update words set n = 1) update w set n = 1", "rows of words"),
        ("create table if not exists words (n integer); update words set n = 1", "rows of words"),
        ("create table other.words (n integer); update public.words set n = 1", "rows of words"),
        (
            "create table w (n integer); drop table w; alter table words rename to w; update w set n = 1",
            "rows of w ",
        ),
        ("update words set n = 1", "rows of words are changed by a job"),
        ("update words set n = 1 where n is null", "rows of words are changed by a job"),
        ("delete from words", "rows of words are changed by a job"),
        ("create table w (n integer); insert into w select n from words", "rows of words are copied by a job"),
        ("do $$ begin update words set n = 1; end $$", "DoStmt is not known to be quick, or hides what it does"),
        ("select change_all_words()", "SelectStmt is not known to be quick, or hides what it does"),
        ("create table w as select * from words", "CreateTableAsStmt is not known to be quick"),
        ("set lock_timeout = 0", "VariableSetStmt is not known to be quick"),
        ("lock table words", "LockStmt is not known to be quick"),
        ("truncate words", "TruncateStmt is not known to be quick"),
        ("vacuum full words", "VacuumStmt is not known to be quick"),
    ],
)
def test_a_statement_that_may_lock_a_table_for_long_is_found(sql, fault):
    found = faults(sql)

    assert len(found) == 1, found
    assert fault in found[0]


@pytest.mark.parametrize(
    "sql",
    [
        "create table w (n integer primary key, foreign key (n) references words (n)); create index on w (n)",
        "create table w (n integer); alter table w add check (n > 0); insert into w values (1); update w set n = 2",
        "-- no-transaction\n-- For lists.\ncreate unique index concurrently words_by_n on words (n)",
        "-- no-transaction\ndrop index concurrently if exists words_by_n",
        "-- no-transaction\nalter table words validate constraint w",
        "alter table words add constraint w check (n is not null) not valid, drop constraint v",
        "alter table words add constraint w unique using index words_by_n",
        "alter table words add column m text not null default '', add column a timestamptz default now()",
        "alter table words add column m integer[] default '{}', alter column n drop not null",
        "alter table words drop column m; drop table old_words",
        "create trigger t before update on words for each row execute function f()",
        "create function f() returns trigger language plpgsql as $$ begin return old; end $$",
        "insert into numbers values (1), (2)",
    ],
)
def test_a_statement_that_locks_a_table_for_a_moment_is_allowed(sql):
    assert faults(sql) == []
