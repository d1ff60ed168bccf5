"""The log of processes: who wrote a line, what is warned about at the start, and which lines are errors."""

from typing import Any

import pytest
from aiohttp import ClientSession

from app.settings import Settings
from streams.wire.codec import loads
from tests.app.valkey_proxy import postgresql_proxy_to
from tests.deploy.commands import Command, command
from tests.deploy.processes.stalled_readers import http
from tests.deploy.serving import server_env, serving, settings
from tests.waiting import until

__all__ = ["http", "settings"]


async def line_of_store(process: Command, event: str) -> dict[str, Any]:
    while (line := await process.event(event))["store"] != "postgres":
        pass
    return line


async def test_each_line_names_its_process_as_the_console_does(settings: Settings, http: ClientSession) -> None:
    async def shown() -> list[str]:
        url = f"http://127.0.0.1:{settings.port}/admin/api/overview"
        admin = {"Authorization": f"Bearer {settings.admin_token.get_secret_value()}"}
        async with http.get(url, headers=admin) as response:
            return sorted(row["process"] for row in (await response.json())["processes"])

    async with serving(settings, PARLEY_HTPP_PORT="8080") as parent:
        warned = await parent.event("settings.unknown_variable")
        assert (warned["level"], warned["variable"]) == ("warning", "PARLEY_HTPP_PORT")
        assert warned["hint"] == "did you mean PORT?"
        listening = [await parent.event("server.listening") for _ in range(2)]
        started = [line for line in map(loads, parent.lines) if line["event"] == "process.started"]
        assert {line["pid"] for line in listening} == {line["pid"] for line in started}
        assert {line["process"] for line in started} == {f"parent-{parent.process.pid}"}
        named = sorted(line["process"] for line in listening)

        async def are_shown() -> bool:
            return await shown() == named

        await until(are_shown)
        assert {loads(line)["process"] for line in parent.lines} == {*named, f"parent-{parent.process.pid}"}


@pytest.mark.parametrize(("name", "started"), [("worker", "worker.started"), ("serve", "server.listening")])
async def test_an_outage_of_postgresql_is_one_error_of_a_process(
    settings: Settings, name: str, started: str
) -> None:
    async with postgresql_proxy_to(settings.database_url) as (proxy, url):
        env = server_env(settings, DATABASE_URL=url, DATABASE_DIRECT_URL="", PARLEY_PROCESSES="1")
        async with command("app", name, **env) as process:
            await process.event(started)
            began = len(process.lines)
            await proxy.stop()
            away = await line_of_store(process, "store.unavailable")
            await process.event("feed.unreachable")  # By then, all pools have tried to connect again.
            await proxy.start()
            back = await line_of_store(process, "store.available")
            lines = [loads(line) for line in process.lines[began:]]
    assert (away["level"], back["level"]) == ("error", "info")
    assert 0 < back["away_s"] < 60
    assert [line["event"] for line in lines if line["level"] == "error"] == ["store.unavailable"]
    assert [line for line in lines if line["event"] == "library"] == []
    assert {line["process"] for line in lines} == {away["process"]}
