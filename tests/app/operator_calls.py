"""Calls of the admin API with the token of an operator."""

from typing import Any

from tests.running.servers import ADMIN_TOKEN, Server

OPERATORS = "/admin/api/operators"


async def call(
    server: Server,
    method: str,
    path: str,
    body: Any = None,
    *,
    token: str | None = ADMIN_TOKEN,
    address: str = "",
    reason: str = "a test",
    key: str = "",
) -> tuple[int, Any]:
    headers = {"X-Forwarded-For": address or "192.0.2.1"}
    if reason:
        headers["X-Parley-Reason"] = reason
    if key:
        headers["Idempotency-Key"] = key
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    async with server.http.request(method, server.url + path, json=body, headers=headers) as response:
        is_json = response.content_type == "application/json" and await response.read()
        return response.status, await response.json() if is_json else None
