"""Operators list streams while a store is unavailable: those that are known, and which processes are missing."""

from typing import Any

from tests.app.operator_calls import call
from tests.app.valkey_proxy import ValkeyProxy, postgresql_proxy_to, settings, valkey_proxy
from tests.running.another_server import another_server
from tests.running.servers import Server

__all__ = ["settings", "valkey_proxy"]


async def streams(server: Server) -> Any:
    status, answer = await call(server, "GET", "/admin/api/streams")
    assert status == 200, answer
    return answer


async def test_without_valkey_the_other_processes_are_named_and_with_it_they_answer_again(
    server: Server, valkey_proxy: ValkeyProxy
) -> None:
    async with another_server(server.services.settings) as other:
        own, others = server.services.heartbeat.process, other.services.heartbeat.process
        assert (await streams(server))["processes"] == sorted([own, others])
        await valkey_proxy.stop()
        answer = await streams(server)
        assert (answer["processes"], answer["silent"], answer["complete"]) == ([own], [others], False)
        await valkey_proxy.start()


async def test_without_postgresql_the_processes_are_those_that_valkey_knows(server: Server) -> None:
    settings = server.services.settings
    async with (
        postgresql_proxy_to(settings.database_url) as (postgresql, url),
        another_server(settings, database_url=url) as other,
    ):
        own, others = server.services.heartbeat.process, other.services.heartbeat.process
        await postgresql.stop()
        answer = await streams(other)
        assert (answer["processes"], answer["silent"]) == (sorted([own, others]), [])
        await postgresql.start()
