"""All processes know the same operators, also while Valkey is unavailable."""

from typing import Any

from tests.app.valkey_proxy import ValkeyProxy, settings, valkey_proxy
from tests.running.another_server import another_server
from tests.running.servers import ADMIN_TOKEN, Server

__all__ = ["settings", "valkey_proxy"]


async def call(server: Server, method: str, path: str, body: Any = None, *, token: str = ADMIN_TOKEN) -> Any:
    """Return the status and the body of the response."""
    headers = {"Authorization": f"Bearer {token}", "X-Parley-Reason": "a test"}
    url = f"{server.url}/admin/api/{path}"
    async with server.http.request(method, url, json=body, headers=headers) as response:
        return response.status, await response.json()


async def test_without_valkey_all_processes_accept_operators_and_refuse_removed_ones(
    server: Server, valkey_proxy: ValkeyProxy
) -> None:
    async with another_server(server.services.settings) as other:
        _, added = await call(server, "POST", "operators", {"name": "ada", "role": "viewer"})
        token = added["token"]
        assert (await call(other, "GET", "kinds", token=token))[0] == 200

        await valkey_proxy.stop()
        assert (await call(other, "GET", "kinds", token=token))[0] == 200
        assert (await call(other, "GET", "kinds"))[0] == 200
        assert (await call(other, "GET", "kinds", token="a wrong one"))[0] == 401
        assert (await call(server, "DELETE", "operators/ada"))[0] == 200
        assert (await call(other, "GET", "kinds", token=token))[0] == 401
        await valkey_proxy.start()
