"""Undoes what a test has left on a server that other tests use too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from actors.runtime.mailbox import Drain
from actors.runtime.supervisor import Supervisor
from app.services import Services
from storage.configs.store import ConfigStore
from storage.postgres.database import Connection
from tests.running.servers import Server

_END_S = 10
_KEEP_CONFIGS = """
create schema kept;
create table kept.configs as table configs;
create table kept.config_revisions as table config_revisions;
create view kept.added as
    select app_id, kind, name from configs except select app_id, kind, name from kept.configs;
create view kept.changed as
    select app_id, kind, name from (
        select app_id, kind, name, change from kept.configs except select app_id, kind, name, change from configs
    ) changed;
"""
_DELETE_ROWS = """
do $$
declare found text;
begin
    set local session_replication_role = replica;  -- Foreign keys are not checked.
    for found in
        select tablename from pg_tables
        where schemaname = 'public' and tablename <> 'processes'
            and tablename not like 'config%' and tablename not like '%migrations'
            and pg_relation_size(to_regclass(format('public.%I', tablename))) > 0
    loop
        execute format('delete from %I', found);
    end loop;
end $$
"""
_RESTORE_CONFIGS = """
update config_changes set change = greatest(change, (select max(change) from configs));  -- Some tests set one.
update config_revisions set value = null where (app_id, kind, name) in (table kept.added);
update configs set change = deleted.change
    from (
        select app_id, kind, name, (select change from config_changes) + row_number() over () as change
        from kept.added
    ) deleted
    where (configs.app_id, configs.kind, configs.name) = (deleted.app_id, deleted.kind, deleted.name);
update config_changes set change = greatest(change, (select max(change) from configs));
delete from configs where (app_id, kind, name) in (table kept.changed);
delete from config_revisions where (app_id, kind, name) in (table kept.changed);
insert into config_revisions select * from kept.config_revisions where (app_id, kind, name) in (table kept.changed);
insert into configs
    select app_id, kind, name, revision, (select change from config_changes) + row_number() over ()
    from kept.configs where (app_id, kind, name) in (table kept.changed);
update kept.configs kept set change = restored.change from configs restored
    where (restored.app_id, restored.kind, restored.name) = (kept.app_id, kept.kind, kept.name)
        and restored.change <> kept.change;
update config_changes set change = greatest(change, (select max(change) from configs));
"""
"""Servers read again what has been changed, deleted or added, because that has a new change. The others stay."""
_FORGET_ADDED = """
with added as (delete from configs where (app_id, kind, name) in (table kept.added) returning *)
delete from config_revisions using added
    where (config_revisions.app_id, config_revisions.kind, config_revisions.name)
        = (added.app_id, added.kind, added.name);
"""


async def keep_configs(server: Server) -> None:
    """Copy the configs of a server, so that `restored` can restore them."""
    async with server.services.database.connection() as conn:
        await conn.execute(_KEEP_CONFIGS)


@asynccontextmanager
async def restored(server: Server) -> AsyncIterator[None]:
    """End the streams that the block leaves, delete its rows and keys, and restore the configs.

    A drain is over afterwards, and clocks show real time. The gate of a vendor account remains, but a test whose
    vendor has another URL gets a new one.
    """
    services = server.services
    version = services.configs.version
    try:
        yield
    finally:
        await _end_streams(services.supervisor)
        async with services.database.connection() as conn:
            await conn.execute(_DELETE_ROWS)
            if services.configs.version != version:
                await _restore_configs(conn, services.configs)
        await services.clock.refresh()  # Or the next test would begin with the time of this one.
        await _delete_keys(services)


async def _end_streams(supervisor: Supervisor) -> None:
    for actor in supervisor.live():
        actor.send(Drain())
    async with asyncio.timeout(_END_S):
        await supervisor.idle()
    supervisor.draining = False


async def _restore_configs(conn: Connection, configs: ConfigStore) -> None:
    await conn.execute(_RESTORE_CONFIGS)
    await configs.refresh()
    await conn.execute(_FORGET_ADDED)


async def _delete_keys(services: Services) -> None:
    """Delete all keys except the list of running processes and their registrations."""
    client = services.valkey.client
    kept = tuple(services.valkey.key(tag).encode() + b":regist" for tag in services.valkey.groups)
    kept += (services.valkey.key("processes").encode(),)
    found = [key async for key in client.scan_iter(f"{services.settings.redis_prefix}*", count=5_000)]
    if deleted := [key for key in found if not key.startswith(kept)]:
        await client.delete(*deleted)
