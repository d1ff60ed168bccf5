"""Webhooks of all payment platforms: repeated, forged and old ones, objects of other apps, and certificates."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.app.callers import working
from tests.app.money.good_requests import GOOD, card_event, paypal_event
from tests.app.money.till import Request, Till
from tests.waiting import until

CARDS, WALLETS, PAYOUTS = (
    f"/bp/webhook/{source}/{{app_id}}/{{config}}" for source in ("cardpay", "walletpay", "payouts")
)
SIGNERS: dict[str, Callable[..., Request]] = {CARDS: card_event, WALLETS: paypal_event, PAYOUTS: paypal_event}
LIMITS = {CARDS: timedelta(minutes=5), WALLETS: timedelta(days=3), PAYOUTS: timedelta(days=3)}
"""How old a webhook may be."""


def body_of(path: str, **resource: Any) -> bytes:
    """An event that has no effect unless `resource` says otherwise."""
    if path == CARDS:
        about = {
            "type": "payment_intent.succeeded",
            "created": 1,
            "data": {"object": resource or {"id": "pi_none"}},
        }
        return dumps({"id": f"evt_{uuid4().hex}", **about})
    about = {"event_type": "CHECKOUT.ORDER.APPROVED", "resource_type": "any", "resource": resource}
    return dumps({"id": f"WH-{uuid4().hex}", **about})


async def stored(till: Till) -> int:
    count: int = await till.fetch("select count(*) from webhooks")
    return count


@pytest.fixture(autouse=True)
async def _connected(till: Till) -> None:
    await GOOD["POST", WALLETS](till)  # The merchant has a webhook from then on.


@pytest.mark.parametrize("path", SIGNERS)
async def test_repeats_that_arrive_together_are_stored_once(till: Till, path: str) -> None:
    request, before = SIGNERS[path](path, body_of(path)), await stored(till)
    answers = await asyncio.gather(*(till.ask(request) for _ in range(8)))
    assert answers == [(200, None)] * 8
    assert await stored(till) == before + 1


@pytest.mark.parametrize("path", SIGNERS)
async def test_old_and_future_and_forged_ones_are_refused(till: Till, path: str) -> None:
    sign, body, before = SIGNERS[path], body_of(path), await stored(till)
    good, minute = sign(path, body), timedelta(minutes=1)
    altered = {
        name: value[:-6] + "AAAAAA"
        for name, value in good.headers.items()
        if name.upper().endswith(("SIG", "SIGNATURE"))
    }
    refused = [
        sign(path, body, ago=LIMITS[path] + minute),
        sign(path, body, ago=-timedelta(minutes=6)),
        replace(good, body=body_of(path)),
        replace(good, headers={}),
        replace(good, headers={**good.headers, **altered}),
        *(replace(good, headers=without) for without in lacking_one(good.headers)),
    ]
    for request in refused:
        status, answer = await till.ask(request)
        found = (status, answer and answer["error"]["error_type"])
        assert found == (400, "invalid_parameter"), (request.headers.keys() ^ good.headers.keys(), request)
    assert await stored(till) == before
    assert (await till.ask(sign(path, body, ago=LIMITS[path] - minute)))[0] == 200


def lacking_one(headers: dict[str, str]) -> list[dict[str, str]]:
    """The headers without each one that the signature depends on."""
    needed = sorted(headers.keys() - {"Content-Type", "CORRELATION-ID", "PAYPAL-AUTH-VERSION"})
    return [{name: value for name, value in headers.items() if name != left_out} for left_out in needed]


async def other_app(till: Till, kind: str) -> None:
    """Let the app `other` have the same account at a platform."""
    configs = till.server.services.configs
    await configs.put("other", "apps", "default", {}, author="tests", origin=COMMAND)
    await configs.put("other", kind, "Default", till.usual()[kind, "Default"], author="tests", origin=COMMAND)


async def entries(till: Till, uid: str) -> list[str]:
    async with till.server.services.database.connection() as conn:
        return [row["app_id"] for row in await conn.fetch("select app_id from asset_entries where uid = $1", uid)]


async def test_a_payment_with_a_card_in_another_app_is_not_touched(till: Till) -> None:
    await other_app(till, "cardpay")
    wallet = await till.wallet()
    intent = (await till.shop.created(till.buyer(wallet), product_id="coins_100"))["id"]
    await till.shop.pay(intent)
    await check_app(till, CARDS, wallet.uid, id=intent)


async def test_an_order_by_wallet_in_another_app_is_not_touched(till: Till) -> None:
    await other_app(till, "walletpay")
    wallet = await till.wallet()
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"], fault="lost")
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    await check_app(till, WALLETS, wallet.uid, id=order["id"])


async def check_app(till: Till, path: str, uid: str, **resource: str) -> None:
    """Deliver an event about a paid object of the app `default` to another app, and then to its own."""

    async def worked() -> bool:
        return await till.fetch("select count(*) from webhooks where status <> 'done'") == 0

    for app, granted in (("other", []), ("default", ["default"])):
        event = SIGNERS[path](path, body_of(path, **resource))
        assert await till.ask(replace(event, path=event.path.replace("/default/", f"/{app}/"))) == (200, None)
        async with working(till.server.services):
            await until(worked)
        assert await entries(till, uid) == granted


CERTIFICATE = "v1/notifications/certs/CERT-1"


@pytest.mark.parametrize("path", [WALLETS, PAYOUTS])
async def test_a_certificate_on_a_private_address_is_not_fetched(till: Till, path: str) -> None:
    asked: list[str] = []

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append("")
        writer.close()

    own = await asyncio.start_server(accept, "127.0.0.1", 0)
    port, before = own.sockets[0].getsockname()[1], await stored(till)
    event = paypal_event(path, body_of(path))
    async with own, till.with_config(path.split("/")[3], certificate_hosts=["api.paypal.com"]):
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"api.paypal.com@127.0.0.1:{port}", f"[::1]:{port}"):
            for scheme in ("https", "http"):
                url = f"{scheme}://{host}/{CERTIFICATE}"
                status, answer = await till.ask(event.having(PAYPAL_CERT_URL=url))
                assert (status, answer["error"]["error_type"]) == (400, "invalid_parameter"), url
    assert (asked, await stored(till)) == ([], before)
