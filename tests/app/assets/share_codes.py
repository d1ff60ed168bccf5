"""Codes of share groups: getting one, and joining by it."""

from typing import Any

from tests.app.callers import ask
from tests.running.servers import Server


async def share_code(server: Server, session: str) -> str:
    status, answer = await _post(server, session, "code", None)
    assert status == 200, answer
    return str(answer["share_code"])


async def join_code(server: Server, session: str, code: str) -> list[dict[str, Any]]:
    """Join, and return the assets of the user."""
    status, answer = await _post(server, session, "join", {"share_code": code})
    assert status == 200, answer
    assets: list[dict[str, Any]] = answer["assets"]
    return assets


async def _post(server: Server, session: str, what: str, body: Any) -> tuple[int, Any]:
    headers = {"X-Service-Session-Token": session}
    return await ask(server, "POST", f"/bp/asset/share_group/{what}", json=body, headers=headers)
