"""Undoes what a test has left on a server that other tests use too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from actors.mailbox import Drain
from actors.supervisor import Supervisor
from app.services import Services
from storage.configs import ConfigStore
from storage.postgres import Connection
from tests.servers import Server

_END_S = 10
_KEEP_CONFIGS = """
create schema kept;
create table kept.configs as table configs;
create table kept.config_revisions as table config_revisions;
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
    loop
        execute format('delete from %I', found);
    end loop;
end $$
"""
_RESTORE_CONFIGS = """
delete from configs;
delete from config_revisions;
insert into config_revisions table kept.config_revisions;
insert into configs
    select app_id, kind, name, revision, (select change from config_changes) + row_number() over ()
    from kept.configs;
update config_changes set change = (select max(change) from configs);
"""
"""Changes have new numbers, because a new number of the last change invalidates the caches of the server."""


async def keep_configs(server: Server) -> None:
    """Copy the configs of a server, so that `restored` can restore them."""
    async with server.services.database.connection() as conn:
        await conn.execute(_KEEP_CONFIGS)


@asynccontextmanager
async def restored(server: Server) -> AsyncIterator[None]:
    """End the streams that the block leaves, delete its rows and keys, and restore the configs.

    The gates of vendor accounts are new afterwards, because an open breaker would refuse the calls of other tests,
    and a drain is over.
    """
    services = server.services
    version = services.configs.version
    try:
        yield
    finally:
        await _end_streams(services.supervisor)
        services.vendors._gates.clear()
        async with services.database.connection() as conn:
            await conn.execute(_DELETE_ROWS)
            if services.configs.version != version:
                await _restore_configs(conn, services.configs)
        await _delete_keys(services)


async def _end_streams(supervisor: Supervisor) -> None:
    for actor in supervisor.live():
        actor.send(Drain())
    async with asyncio.timeout(_END_S):
        await supervisor.idle()
    supervisor.draining = False


async def _restore_configs(conn: Connection, configs: ConfigStore) -> None:
    await conn.execute(_RESTORE_CONFIGS)
    configs._entries.clear()
    configs.version = 0
    await configs.refresh()


async def _delete_keys(services: Services) -> None:
    """Delete all keys except the list of running processes."""
    client, kept = services.valkey.client, services.valkey.key("processes").encode()
    found = [key async for key in client.scan_iter(f"{services.settings.redis_prefix}*", count=5_000)]
    if deleted := [key for key in found if not key.startswith(kept)]:
        await client.delete(*deleted)
