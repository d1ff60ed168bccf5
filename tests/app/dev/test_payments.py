"""What the payments page gets from a development server: its products, and a token of the app's own server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.callers import ask
from tests.running.servers import Databases, Server, new_server

SANDBOX = "http://127.0.0.1:9"


@pytest.fixture
async def server(databases: Databases, tmp_path: Path) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path, sandbox_url=SANDBOX) as running:
        yield running


async def put(server: Server, kind: str, name: str, value: dict[str, Any]) -> None:
    await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)


async def test_products_have_the_ways_in_which_they_can_be_paid(server: Server) -> None:
    await put(server, "products", "gift", {"type": "nonconsumable", "asset": "gift"})
    status, answer = await ask(server, "GET", "/dev/payments/products")
    assert (status, answer["card_page_url"]) == (200, f"{SANDBOX}/stripe/pay")
    ways = {
        product["product_id"]: (product["title"], product["by_wallet"], product["by_card"])
        for product in answer["products"]
    }
    assert ways["coins_100"] == ("100 coins", True, True)
    assert ways["pro_month"] == ("Pro, monthly", True, False)
    assert ways["gift"] == ("gift", False, False)


async def test_payments_outside_the_sandbox_have_no_page(server: Server) -> None:
    await put(server, "cardpay", "Default", {"secret_key": "sk", "webhook_secrets": ["whsec"]})
    _, answer = await ask(server, "GET", "/dev/payments/products")
    assert answer["card_page_url"] == ""


async def test_the_token_is_that_of_an_apps_own_server(server: Server) -> None:
    _, session = await server.login()
    _, me = await ask(server, "GET", "/bp/user/me", headers={"X-Service-Session-Token": session})
    status, answer = await ask(server, "POST", "/dev/server-token", json={})
    assert status == 200
    headers = {"X-Service-Auth-Token": answer["token"]}
    status, _ = await ask(server, "GET", f"/bp/server/user/{me['user']['uid']}", headers=headers)
    assert status == 200


async def test_an_app_without_such_a_key_has_no_token(server: Server) -> None:
    await put(server, "auth", "default", {"require_sign": False})
    status, answer = await ask(server, "POST", "/dev/server-token", json={"app": "default"})
    assert (status, answer["error"]["error_type"]) == (422, "config_invalid")
    status, answer = await ask(server, "POST", "/dev/server-token", json={"app": "unknown"})
    assert (status, answer["error"]["error_type"]) == (400, "app_not_found")
