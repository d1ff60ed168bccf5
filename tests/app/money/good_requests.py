"""A request of a new user to each endpoint of money that succeeds, after all that has to come before it."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

from storage.accounts import emails
from streams.wire.codec import dumps
from tests.app.money.till import Place, Request, Till
from tests.app.payments.cards.shop import CARD
from tests.app.payments.cards.subscribers import setup, subscribed
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet
from tests.calendar.clock import epoch_s, utc_now
from vendors.sandbox.payments.paypal.webhooks import signed

Prepare = Callable[[Till], Awaitable[Request]]
GOOD: dict[Place, Prepare] = {}
INTENTS = "/bp/server/user/{user_id}/asset/cardpay_payment_intent"
CARD_SUB = "/bp/asset/cardpay_sub/{sub_id}"
DEBUG = "/bp/asset/debug"
SETUP, PAY = f"{DEBUG}/cardpay_setup_intent/confirm", f"{DEBUG}/cardpay_payment_intent/confirm"
METHOD = f"{DEBUG}/cardpay_sub/{{sub_id}}/default_payment_method"
SUB, ORDER = "/bp/asset/walletpay_sub", "/bp/asset/walletpay"
WITHDRAW = "/bp/server/user/{user_id}/withdraw/"
CODE, JOIN = "/bp/asset/share_group/code", "/bp/asset/share_group/join"


def good(method: str, *paths: str) -> Callable[[Callable[..., Awaitable[Request]]], Prepare]:
    """Declare the request to a path, or to several that take the same parameters."""

    def declare(prepare: Callable[..., Awaitable[Request]]) -> Prepare:
        for path in paths:
            GOOD[method, path] = lambda till, path=path: prepare(till, path)  # type: ignore[misc]
        return lambda till: prepare(till, paths[0])

    return declare


def by_client(wallet: Wallet, method: str, path: str, body: Any = None, other: Any = None) -> Request:
    headers = {"X-Service-Session-Token": wallet.session}
    return Request(method, path, headers, wallet.uid, wallet.session, body, other)


def by_server(
    wallet: Wallet, method: str, path: str, body: Any = None, *, scope: str, other: Any = None
) -> Request:
    path = path.format(user_id=wallet.uid)
    return Request(method, path, {}, wallet.uid, wallet.session, body, other, scope)


@good("GET", "/bp/asset")
async def list_assets(till: Till, path: str) -> Request:
    return by_client(await till.wallet(), "GET", path)


@good("GET", "/bp/server/user/{user_id}/asset")
async def list_assets_of_a_user(till: Till, path: str) -> Request:
    return by_server(await till.wallet(), "GET", path, scope="assets")


@good("POST", CODE)
async def share_code(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    await wallet.subscribed()
    return by_client(wallet, "POST", path, {"share_code_quota": 1}, other={"share_code_quota": 2})


@good("POST", JOIN)
async def join(till: Till, path: str) -> Request:
    _, answer = await till.ask(await GOOD["POST", CODE](till))
    body = {"share_code": answer["share_code"]}
    return by_client(await till.wallet(), "POST", path, body, other={"share_code": "0000000000"})


@good("POST", INTENTS)
async def create_payment(till: Till, path: str) -> Request:
    body = {"amonut": 199, "currency": "usd", "product_id": "coins_100"}
    return by_server(await till.wallet(), "POST", path, body, scope="payments", other={"amonut": 200})


@good("GET", f"{INTENTS}/{{payment_intent_id}}")
async def get_payment(till: Till, _: str) -> Request:
    wallet = await till.wallet()
    intent = await till.shop.created(till.buyer(wallet), product_id="coins_100")
    return by_server(wallet, "GET", f"{INTENTS}/{intent['id']}", scope="payments")


@good("POST", "/bp/asset/cardpay_setup_intent")
async def create_setup(till: Till, path: str) -> Request:
    return by_client(await till.wallet(), "POST", path, {}, other={"product_id": "pro_year"})


@good("POST", "/bp/asset/cardpay_sub")
async def subscribe_by_card(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    body = {"product_id": "pro_month", "setup_intent_id": await setup(till.shop, till.buyer(wallet))}
    return by_client(wallet, "POST", path, body, other={"product_id": "pro_year"})


@good("GET", CARD_SUB)
async def get_card_subscription(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    name = (await subscribed(till.shop, till.buyer(wallet)))["cardpay_sub"]["id"]
    return by_client(wallet, "GET", path.format(sub_id=name))


@good("DELETE", CARD_SUB)
async def cancel_card_subscription(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    name = (await subscribed(till.shop, till.buyer(wallet)))["cardpay_sub"]["id"]
    return by_client(wallet, "DELETE", path.format(sub_id=name), other={"path": path.format(sub_id="another")})


@good("POST", SETUP)
async def confirm_setup(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    _, answer = await till.shop.client_call(till.buyer(wallet), "POST", "/bp/asset/cardpay_setup_intent", json={})
    body = {"setup_intent_id": answer["cardpay_setup_intent"]["id"], "card": CARD}
    return by_client(wallet, "POST", path, body, other={"setup_intent_id": "seti_1"})


@good("POST", PAY)
async def confirm_payment(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    intent = await till.shop.created(till.buyer(wallet), product_id="coins_100")
    body = {"payment_intent_id": intent["id"], "card": CARD}
    return by_client(wallet, "POST", path, body, other={"payment_intent_id": "pi_1"})


@good("POST", METHOD)
async def set_payment_method(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    name = (await subscribed(till.shop, till.buyer(wallet)))["cardpay_sub"]["id"]
    body = {"payment_method_name": "pm_card_visa", "config_name": "Default"}
    return by_client(wallet, "POST", path.format(sub_id=name), body, other={"payment_method_name": "pm_1"})


@good("POST", SUB)
async def subscribe_by_wallet(till: Till, path: str) -> Request:
    return by_client(await till.wallet(), "POST", path, {"product_id": "month"}, other={"product_id": "year"})


@good(
    "GET",
    f"{SUB}/{{sub_id}}/sync",
    f"{SUB}/{{sub_id}}",
    f"{SUB}/{{sub_id}}/fetch",
    f"{SUB}/{{sub_id}}/sync_upgrade",
)
async def read_wallet_subscription(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    return by_client(wallet, "GET", path.format(sub_id=await wallet.subscribed()))


@good("POST", f"{SUB}/{{sub_id}}/upgrade")
async def upgrade(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    body, other = {"new_bp_product_id": "year"}, {"new_bp_product_id": "month"}
    return by_client(wallet, "POST", path.format(sub_id=await wallet.subscribed()), body, other)


@good("POST", f"{ORDER}/create")
async def create_order(till: Till, path: str) -> Request:
    return by_client(await till.wallet(), "POST", path, {"product_id": "coins"}, other={"product_id": "coins_100"})


@good("POST", f"{ORDER}/capture")
async def capture(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    return by_client(wallet, "POST", path, {"order_id": order["id"]}, other={"order_id": "X"})


@good("GET", f"{ORDER}/sync/{{order_id}}", f"{ORDER}/{{order_id}}/fetch")
async def read_order(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    return by_client(wallet, "GET", path.format(order_id=(await wallet.order())["id"]))


@good("POST", WITHDRAW)
async def withdraw(till: Till, path: str) -> Request:
    wallet = await till.wallet()
    async with till.server.services.database.transaction() as conn:
        address, now = f"{wallet.uid}@example.com", utc_now()
        await emails.set_current(conn, "default", wallet.uid, address=address, old="", now=now)
    body = {"cash_num": 1.5, "withdraw_id": uuid4().hex, "start_time": "2026-11-23T10:00:00Z"}
    return by_server(wallet, "POST", path, body, scope="withdrawals", other={"cash_num": 2})


@good("GET", WITHDRAW)
async def query_withdrawal(till: Till, path: str) -> Request:
    made = await GOOD["POST", WITHDRAW](till)
    status, answer = await till.ask(made)
    assert status == 200, answer
    return Request("GET", path.format(user_id=made.uid), {}, made.uid, made.session, scope=made.scope)


@good("POST", "/bp/webhook/cardpay/{app_id}/{config}")
async def card_webhook(_: Till, path: str) -> Request:
    about = {"id": f"evt_{uuid4().hex}", "type": "a.b", "created": 1, "data": {"object": {"id": "pi_1"}}}
    return card_event(path, dumps(about))


def card_event(path: str, body: bytes, *, ago: timedelta = timedelta()) -> Request:
    """A webhook of the card platform, signed some time ago."""
    at = int(epoch_s() - ago.total_seconds())
    mac = hmac.new(b"whsec_sandbox", b"%d." % at + body, hashlib.sha256).hexdigest()
    headers = {"Stripe-Signature": f"t={at},v1={mac}"}
    return Request("POST", path.format(app_id="default", config="Default"), headers, "", "", body)


@good("POST", "/bp/webhook/walletpay/{app_id}/{config}", "/bp/webhook/payouts/{app_id}/{config}")
async def paypal_webhook(till: Till, path: str) -> Request:
    await (await till.wallet()).control("webhook", id=WEBHOOK, url=f"{till.server.url}/nowhere")
    about = {"id": f"WH-{uuid4().hex}", "event_type": "A.B", "resource_type": "any", "resource": {}}
    return paypal_event(path, dumps(about))


def paypal_event(path: str, body: bytes, *, ago: timedelta = timedelta()) -> Request:
    """A webhook of PayPal, signed some time ago."""
    headers, body = signed(body, WEBHOOK, tls_url="https://127.0.0.1:1", at=utc_now() - ago)
    return Request("POST", path.format(app_id="default", config="Default"), dict(headers), "", "", body)
