"""Subscriptions of users of the shop."""

from datetime import timedelta
from typing import Any

from streams.wire.codec import rfc3339
from tests.app.payments.cards.shop import CARD, Buyer, Shop
from tests.calendar.clock import utc_now

REFUSED = {
    "type": "card", "card[number]": "4000000000009995", "card[exp_month]": "12", "card[exp_year]": "2040",
}  # fmt: skip
"""A card that cannot be linked."""


async def setup(shop: Shop, buyer: Buyer, *, number: str = CARD["number"]) -> str:
    """Link a card by a setup intent, and return the intent's id."""
    status, answer = await shop.client_call(buyer, "POST", "/bp/asset/cardpay_setup_intent", json={})
    assert status == 200, answer
    name: str = answer["cardpay_setup_intent"]["id"]
    body = {"setup_intent_id": name, "card": {**CARD, "number": number}}
    path = "/bp/asset/debug/cardpay_setup_intent/confirm"
    status, answer = await shop.client_call(buyer, "POST", path, json=body)
    assert status == 200, answer
    return name


async def subscribe(shop: Shop, buyer: Buyer, *, key: str | None = None, **body: Any) -> tuple[int, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    given = {"product_id": "pro_month", **body}
    return await shop.client_call(buyer, "POST", "/bp/asset/cardpay_sub", json=given, headers=headers)


async def subscribed(shop: Shop, buyer: Buyer, **body: Any) -> dict[str, Any]:
    """Subscribe with a card that was set up. Return the reply."""
    if "payment_method_id" not in body and "setup_intent_id" not in body:
        body["setup_intent_id"] = await setup(shop, buyer)
    status, answer = await subscribe(shop, buyer, **body)
    assert status == 200, answer
    found: dict[str, Any] = answer
    return found


async def read(shop: Shop, buyer: Buyer, name: str) -> dict[str, Any]:
    status, answer = await shop.client_call(buyer, "GET", f"/bp/asset/cardpay_sub/{name}")
    assert status == 200, answer
    found: dict[str, Any] = answer
    return found


async def cancelled(shop: Shop, buyer: Buyer, name: str) -> dict[str, Any]:
    status, answer = await shop.client_call(buyer, "DELETE", f"/bp/asset/cardpay_sub/{name}")
    assert status == 200, answer
    found: dict[str, Any] = answer
    return found


async def origins(shop: Shop, buyer: Buyer) -> list[str]:
    async with shop.server.services.database.connection() as conn:
        rows = await conn.fetch(
            "select case kind when 'grant' then origin else kind end as what from asset_entries"
            " where uid = $1 order by entry_id",
            buyer.uid,
        )
    return [row["what"] for row in rows]


async def later(shop: Shop, buyer: Buyer, *, days: int) -> Buyer:
    """Let time pass for the app and its platform, and let the user log in again."""
    clock = shop.server.services.clock
    at = utc_now() + timedelta(seconds=clock.offset_s("default"), days=days)
    return await move_to(shop, buyer, rfc3339(at))


async def move_to(shop: Shop, buyer: Buyer, at: str) -> Buyer:
    """Move the clock of the app, which its platform follows, and let the user log in again."""
    async with shop.server.http.post(f"{shop.server.url}/dev/clock", json={"app": "default", "at": at}) as response:
        assert response.status == 200
    return await shop.back(buyer.device)
