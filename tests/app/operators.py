"""An operator of a server: requests to the admin API."""

from dataclasses import dataclass
from typing import Any

from tests.running.servers import ADMIN_TOKEN, Server


@dataclass(frozen=True)
class AdminResponse:
    status: int
    body: Any

    @property
    def error(self) -> tuple[int, str]:
        return self.status, self.body["error"]["message"]


@dataclass(frozen=True)
class Operator:
    server: Server

    async def __call__(self, method: str, path: str, value: Any = None, **headers: str) -> AdminResponse:
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X_Parley_Reason": "a test", **headers}
        headers = {name.replace("_", "-"): text for name, text in headers.items() if text}
        url = f"{self.server.url}/admin/api/{path}"
        async with self.server.http.request(method, url, json=value, headers=headers) as response:
            return AdminResponse(response.status, await response.json() if await response.read() else None)

    async def put(self, path: str, value: Any, **headers: str) -> AdminResponse:
        return await self("PUT", path, {"value": value}, **headers)
