"""Subscriptions of users of the shop."""

from typing import Any

from tests.app.payments.cards.shop import CARD, Buyer, Shop


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
