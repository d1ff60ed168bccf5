"""A server whose sign-in platforms are emulated by the sandbox, and people who sign in there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from streams.wire.codec import dumps
from tests.app.callers import ask
from tests.running.servers import Databases, Server, new_server
from vendors.sandbox.server import listening

PROVIDERS = {
    "ios_vendor_id": "apple",
    "social_network_a": "facebook",
    "search_vendor_id": "google",
    "photo_network": "instagram",
    "microblog": "weibo",
    "chat_network": "qq",
    "im_network_a": "qq",
    "im_network_b": "wechat",
    "payment_wallet_a": "alipay",
    "software_vendor_id": "microsoft",
    "ios_games_service": "game_center",
    "retail_platform": "jd",
}
"""The provider that the development app has for each platform."""


@asynccontextmanager
async def with_sandbox(databases: Databases, data_dir: Path) -> AsyncIterator[Server]:
    async with (
        listening() as sandbox,
        new_server(databases, data_dir, sandbox_url=sandbox.url) as running,
    ):
        yield running


async def proof(
    server: Server, platform: str, subject: str | None = None, *, provider: str | None = None, **issue: Any
) -> dict[str, Any]:
    """Let a person, by default a new one, sign in at a platform. Return the body of a login."""
    url = f"{server.services.settings.sandbox_url}/{provider or PROVIDERS[platform]}/_issue"
    body = {"subject": subject or f"s{uuid4().hex}", **issue}
    async with server.http.post(url, data=dumps(body)) as response:
        fields = await response.json()
        assert response.status == 200, fields
    return {platform: fields}


async def failures(server: Server, **query: str) -> list[dict[str, Any]]:
    """The traces of failed logins, as an operator reads them."""
    headers = {"Authorization": f"Bearer {server.services.settings.admin_token.get_secret_value()}"}
    status, reply = await ask(server, "GET", "/admin/api/login_failures", params=query, headers=headers)
    assert status == 200, reply
    found: list[dict[str, Any]] = reply["login_failures"]
    return found
