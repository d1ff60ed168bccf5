"""The sandbox's payment platforms follow the clock of an app, and call the webhooks of a development server."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import encode_basic_auth

from deploy.webhooks import register_webhooks
from storage.operators.audit import COMMAND
from tests.calendar.clock import utc_now
from tests.running.servers import Databases, Server, new_server
from tests.waiting import until
from vendors.sandbox.server import Running, listening

DAY = timedelta(days=1)
OTHER = {"base_url": "{sandbox}/paypal", "client_id": "other-shop", "client_secret": "s", "webhook_id": "WH-OTHER"}


@pytest.fixture
async def sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


@pytest.fixture
async def server(databases: Databases, tmp_path: Path, sandbox: Running) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path, sandbox_url=sandbox.url) as running:
        yield running


async def merchant(server: Server, sandbox: Running, client_id: str) -> dict[str, Any]:
    """Return what the sandbox says of a merchant."""
    body = {"client_id": client_id}
    async with server.http.post(f"{sandbox.url}/paypal/_control/deliveries", json=body) as response:
        answer: dict[str, Any] = await response.json()
        return answer


async def ahead(server: Server, sandbox: Running, client_id: str) -> timedelta:
    return datetime.fromisoformat((await merchant(server, sandbox, client_id))["now"]) - utc_now()


async def move(server: Server, to: datetime | None) -> int:
    body = {"app": "default", "at": None if to is None else to.isoformat()}
    async with server.http.post(f"{server.url}/dev/clock", json=body) as response:
        return response.status


async def test_the_apps_merchants_follow_its_clock(server: Server, sandbox: Running):
    await server.services.configs.put("other", "apps", "default", {}, author="test", origin=COMMAND)
    await server.services.configs.put("other", "walletpay", "Default", OTHER, author="test", origin=COMMAND)

    assert await move(server, utc_now() + 40 * DAY) == 200
    moved = await ahead(server, sandbox, "sandbox-app")
    assert await move(server, None) == 200

    assert 39 * DAY < moved < 41 * DAY
    assert abs(await ahead(server, sandbox, "sandbox-app")) < DAY
    assert abs(await ahead(server, sandbox, "other-shop")) < DAY


async def card_platform(server: Server, sandbox: Running, path: str, **form: str) -> dict[str, Any]:
    url, headers = f"{sandbox.url}/stripe/v1/{path}", {"Authorization": "Bearer sandbox"}
    method = "POST" if form else "GET"
    async with server.http.request(method, url, data=form, headers=headers) as response:
        answer: dict[str, Any] = await response.json()
        return answer


async def test_the_card_platform_follows_the_clock_of_the_app(server: Server, sandbox: Running):
    customer = (await card_platform(server, sandbox, "customers", email="a@b.example"))["id"]
    card = await card_platform(server, sandbox, "payment_methods/pm_card_visa/attach", customer=customer)
    form = {"customer": customer, "items[0][price]": "price_pro_month", "default_payment_method": card["id"]}
    made = await card_platform(server, sandbox, "subscriptions", **form)

    assert await move(server, utc_now() + 40 * DAY) == 200
    invoices = await card_platform(server, sandbox, f"invoices?subscription={made['id']}")
    assert len(invoices["data"]) == 2
    assert await move(server, None) == 200
    now = await card_platform(server, sandbox, "customers", email="b@b.example")
    assert abs(now["created"] - utc_now().timestamp()) < DAY.total_seconds()


async def test_webhooks_of_configs_at_the_sandbox_are_registered(server: Server, sandbox: Running):
    configs = server.services.configs
    await configs.put("default", "walletpay", "Second", {**OTHER, "webhook_id": ""}, author="test", origin=COMMAND)
    real = {**OTHER, "base_url": None, "client_id": "real"}
    await configs.put("default", "walletpay", "Real", real, author="test", origin=COMMAND)

    await register_webhooks(configs, sandbox_url=sandbox.url, server_url=server.url)

    assert set((await merchant(server, sandbox, "sandbox-app"))["webhooks"].values()) == {
        f"{server.url}/bp/webhook/walletpay/default/Default",
        f"{server.url}/bp/webhook/payouts/default/Default",
    }
    assert (await merchant(server, sandbox, "other-shop"))["webhooks"] == {}
    assert (await merchant(server, sandbox, "real"))["webhooks"] == {}
    endpoints = await card_platform(server, sandbox, "webhook_endpoints")
    assert [endpoint["url"] for endpoint in endpoints["data"]] == [
        f"{server.url}/bp/webhook/cardpay/default/Default"
    ]


async def test_events_of_both_platforms_reach_the_server(server: Server, sandbox: Running):
    await register_webhooks(server.services.configs, sandbox_url=sandbox.url, server_url=server.url)

    await card_platform(server, sandbox, "customers", email="a@b.example")
    login, url = encode_basic_auth("sandbox-app", "sandbox-secret"), f"{sandbox.url}/paypal/v1"
    grant = {"grant_type": "client_credentials"}
    async with server.http.post(f"{url}/oauth2/token", data=grant, headers={"Authorization": login}) as response:
        headers = {"Authorization": f"Bearer {(await response.json())['access_token']}"}
    urls = {"return_url": "https://app.example/paid", "cancel_url": "https://app.example/cancelled"}
    body = {"plan_id": "P-5ML4271244454362WXNWU5NQ", "application_context": urls}
    async with server.http.post(f"{url}/billing/subscriptions", json=body, headers=headers) as response:
        assert response.status == 201, await response.text()

    async with server.services.database.connection() as conn:
        await until(lambda: conn.fetchval("select count(distinct source) = 3 from webhooks"))
