"""A session that one process ends is refused by another, even if the first cannot announce it through Valkey."""

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from app.settings import Settings
from tests.app.valkey_proxy import ValkeyProxy, valkey_proxy
from tests.deploy.commands import Command
from tests.deploy.serving import serving, settings
from tests.running.ports import free_ports
from tests.waiting import until

__all__ = ["settings", "valkey_proxy"]

WITHIN_S = 1


@dataclass
class ServerProcess:
    url: str
    command: Command
    http: aiohttp.ClientSession

    async def call(self, method: str, path: str, session: str = "", body: Any = None) -> tuple[int, Any]:
        headers = {"X-Service-Session-Token": session} if session else {}
        async with self.http.request(method, f"{self.url}/bp/user/{path}", json=body, headers=headers) as response:
            return response.status, await response.json() if await response.read() else None

    async def log_in(self) -> str:
        status, reply = await self.call("POST", "login", body={"device": {"id": uuid4().hex}})
        assert status == 200, reply
        token: str = reply["user"]["session"]["session_token"]
        return token

    async def refusal_of(self, session: str) -> str | None:
        """Return the error of a call that frozen users must not make, or `None`."""
        _, reply = await self.call("GET", "me/sessions", session)
        return reply["error"]["error_type"] if "error" in reply else None


@asynccontextmanager
async def server_process(settings: Settings, *, port: int) -> AsyncIterator[ServerProcess]:
    own = replace(settings, port=port)
    async with (
        serving(own, PARLEY_PROCESSES="1") as command,
        aiohttp.ClientSession() as http,
    ):
        await command.event("server.listening")
        yield ServerProcess(f"http://127.0.0.1:{port}", command, http)


@pytest.mark.usefixtures("services")
@pytest.mark.parametrize(
    ("path", "refused_with"),
    [("logout", "account.invalid_session"), ("me/deactivate", "account.deactivate_pending_user")],
)
async def test_what_a_process_without_valkey_revokes_is_refused_by_another_though_the_first_dies(
    settings: Settings, valkey_proxy: ValkeyProxy, path: str, refused_with: str
):
    port = free_ports(2)[0]
    async with AsyncExitStack() as stack:
        behind_proxy = replace(settings, redis_url=valkey_proxy.url)
        first = await stack.enter_async_context(server_process(behind_proxy, port=port))
        second = await stack.enter_async_context(server_process(settings, port=port + 1))
        session = await second.log_in()
        for _ in range(3):  # The third call finds the session in the process.
            assert await second.refusal_of(session) is None
        await valkey_proxy.stop()
        assert (await first.call("POST", path, session))[0] == 200
        first.command.process.send_signal(signal.SIGKILL)

        async def refused() -> bool:
            return await second.refusal_of(session) == refused_with

        await until(refused, within_s=WITHIN_S)
