"""Users of tests, and their calls."""

from typing import Any
from uuid import uuid4

from tests.app.callers import ask, token
from tests.running.servers import Server

SOCIAL = "/bp/user/me/socialaccount"


def player(player_id: str | None = None) -> dict[str, Any]:
    """A proof of an identity at `android_games_service`, which needs no call to a platform."""
    return {"android_games_service": {"player_id": player_id or f"g{uuid4().hex}"}}


async def login(server: Server, body: dict[str, Any], **options: Any) -> tuple[int, Any]:
    return await ask(server, "POST", "/bp/user/login", json=body, **options)


async def enter(server: Server, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Log in. Return the reply, and the header of the session."""
    status, reply = await login(server, body)
    assert status == 200, reply
    return reply, {"X-Service-Session-Token": reply["user"]["session"]["session_token"]}


async def new_user(server: Server) -> tuple[str, dict[str, str]]:
    """Log in with a new device. Return the user, and the header of the session."""
    uid, session_token = await server.login()
    return uid, {"X-Service-Session-Token": session_token}


async def bind(server: Server, session: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
    return await ask(server, "POST", SOCIAL, json=body, headers=session)


async def me(server: Server, session: dict[str, str]) -> dict[str, Any]:
    status, reply = await ask(server, "GET", "/bp/user/me", headers=session)
    assert status == 200, reply
    user: dict[str, Any] = reply["user"]
    return user


def error_type(reply: Any) -> str:
    found: str = reply["error"]["error_type"]
    return found


__all__ = ["SOCIAL", "ask", "bind", "enter", "error_type", "login", "me", "new_user", "player", "token"]
