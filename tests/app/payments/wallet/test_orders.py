"""Users buy a product once by wallet: they approve an order, and its capture grants the product once."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from storage.payments.wallet.orders import WalletOrder
from tests.app.callers import working
from tests.app.operators import Operator
from tests.app.payments.wallet.wallets import Wallet, another, error, put
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of


async def fetched(wallet: Wallet, order_id: str) -> dict[str, Any]:
    status, answer = await wallet.get(f"walletpay/{order_id}/fetch")
    assert status == 200, answer
    order: dict[str, Any] = answer["walletpay_order"]
    return order


async def bought(wallet: Wallet) -> tuple[str, str]:
    """The ids of an order that is paid, and of its capture."""
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    assert (await wallet.capture(order["id"]))[1]["walletpay_order"]["status"] == "COMPLETED"
    [(key, _)] = await wallet.entries()
    return order["id"], key.removeprefix("wallet:capture:")


async def test_an_order_is_created_approved_and_captured_and_grants_its_product(wallet: Wallet) -> None:
    order = await wallet.order()
    assert (order["status"], order["amount"], order["currency"]) == ("CREATED", 199, "usd")
    returned = await wallet.approve(order["approve_link_href"])
    assert returned.startswith("https://app.example/paid?")
    assert await wallet.assets() == {}
    status, answer = await wallet.capture(order["id"])
    assert (status, answer["walletpay_order"]) == (
        200,
        {"id": order["id"], "status": "COMPLETED", "amount": 199, "currency": "usd", "approve_link_href": ""},
    )
    coins = (await wallet.assets())["coins"]
    assert (coins["quantity"], coins["origin"], coins["receipt_id"]) == (100, "purchase", order["id"])
    assert (coins["bp_product_id"], coins["platform"], coins["product_id"]) == ("coins", "", "")
    [(key, kind)] = await wallet.entries()
    assert (key.startswith("wallet:capture:"), kind) == (True, "grant")
    [sent] = wallet.calls("/capture")
    assert sent["key"].endswith(":capture:0")


async def test_the_price_depends_on_the_country(wallet: Wallet) -> None:
    order = await wallet.order(country_code="JP")
    assert (order["amount"], order["currency"]) == (300, "jpy")
    assert (await wallet.order(country_code="US"))["currency"] == "usd"


async def test_a_captured_order_is_captured_once(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    answers = await asyncio.gather(*(wallet.capture(order["id"]) for _ in range(5)))
    assert {answer["walletpay_order"]["status"] for _, answer in answers} == {"COMPLETED"}
    assert (await wallet.capture(order["id"]))[1] == answers[0][1]
    assert (await wallet.assets())["coins"]["quantity"] == 100


async def test_an_order_that_is_not_approved_is_not_captured(wallet: Wallet) -> None:
    order = await wallet.order()
    status, answer = await wallet.capture(order["id"])
    message = "invalid_operation: the payer has not approved the order"
    assert (status, answer["error"]["message"]) == (400, message)
    assert (await fetched(wallet, order["id"]))["approve_link_href"] == order["approve_link_href"]


async def test_sync_does_not_capture(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    status, answer = await wallet.get(f"walletpay/sync/{order['id']}")
    assert (status, answer["walletpay_order"]["status"], answer["assets"]) == (200, "APPROVED", [])
    assert answer["walletpay_order"]["approve_link_href"] == ""


async def test_sync_grants_what_a_capture_without_an_answer_has_paid_and_fetch_does_not(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    status, answer = await wallet.get(f"walletpay/{order['id']}/fetch")
    assert (status, answer["walletpay_order"]["status"], answer["assets"]) == (200, "COMPLETED", [])
    status, answer = await wallet.get(f"walletpay/sync/{order['id']}")
    assert (status, answer["walletpay_order"]["status"]) == (200, "COMPLETED")
    assert [asset["quantity"] for asset in answer["assets"]] == [100]


async def test_a_declined_payment_leaves_an_order_that_can_be_approved_again(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"], fault="decline")
    status, answer = await wallet.capture(order["id"])
    declined = answer["walletpay_order"]
    assert (status, declined["status"]) == (200, "CREATED")
    assert await wallet.assets() == {}
    await wallet.approve(declined["approve_link_href"])
    assert (await wallet.capture(order["id"]))[1]["walletpay_order"]["status"] == "COMPLETED"
    assert [call["key"].rpartition(":")[2] for call in wallet.calls("/capture")] == ["0", "1"]


async def test_a_payment_that_is_held_grants_once_it_is_made(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"], fault="pending")
    status, answer = await wallet.capture(order["id"])
    assert (status, answer["walletpay_order"]["status"], await wallet.assets()) == (200, "APPROVED", {})
    read = await wallet.platform("GET", f"/v2/checkout/orders/{order['id']}")
    [capture] = read["purchase_units"][0]["payments"]["captures"]
    await wallet.control("settle", capture_id=capture["id"], state="completed")
    _, answer = await wallet.get(f"walletpay/sync/{order['id']}")
    assert answer["walletpay_order"]["status"] == "COMPLETED"
    assert (await wallet.assets())["coins"]["quantity"] == 100


async def test_a_payment_that_is_held_and_then_declined_grants_nothing(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"], fault="pending")
    await wallet.capture(order["id"])
    read = await wallet.platform("GET", f"/v2/checkout/orders/{order['id']}")
    [capture] = read["purchase_units"][0]["payments"]["captures"]
    await wallet.control("settle", capture_id=capture["id"], state="declined")
    _, answer = await wallet.get(f"walletpay/sync/{order['id']}")
    assert (answer["walletpay_order"]["status"], answer["assets"]) == ("VOIDED", [])


async def test_a_refund_takes_back_what_the_order_granted(wallet: Wallet) -> None:
    order_id, capture_id = await bought(wallet)
    await wallet.control("refund", payment_id=capture_id, value="0.50")
    await wallet.get(f"walletpay/sync/{order_id}")
    assert (await wallet.assets())["coins"]["quantity"] == 100
    await wallet.control("refund", payment_id=capture_id)
    _, answer = await wallet.get(f"walletpay/sync/{order_id}")
    assert (answer["walletpay_order"]["status"], answer["assets"][0]["quantity"]) == ("COMPLETED", 0)
    assert answer["assets"][0]["is_refund"] is True
    await wallet.get(f"walletpay/sync/{order_id}")
    assert await wallet.entries() == [(f"wallet:capture:{capture_id}", "grant"), (f"refund:{capture_id}", "refund")]


async def test_a_refund_that_is_seen_before_its_payment_takes_back_only_that_payment(wallet: Wallet) -> None:
    await bought(wallet)
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    read = await wallet.platform("GET", f"/v2/checkout/orders/{order['id']}")
    await wallet.control("refund", payment_id=read["purchase_units"][0]["payments"]["captures"][0]["id"])
    await wallet.get(f"walletpay/sync/{order['id']}")
    assert (await wallet.assets())["coins"]["quantity"] == 100
    assert await wallet.kinds() == ["grant", "grant", "refund"]


async def test_an_order_grants_what_its_product_was_when_it_was_made(wallet: Wallet) -> None:
    order = await wallet.order()
    await put(wallet.server, "products", "coins", {"type": "consumable", "asset": "coins", "quantity": 5})
    await wallet.approve(order["approve_link_href"])
    await wallet.capture(order["id"])
    assert (await wallet.assets())["coins"]["quantity"] == 100


async def test_an_order_of_another_user_does_not_exist(wallet: Wallet) -> None:
    order, other = await wallet.order(), await another(wallet)
    for order_id in (order["id"], "5O190127TN364715T", "..%2Fx", "x" * 200):
        answers = [
            await other.get(f"walletpay/sync/{order_id}"),
            await other.get(f"walletpay/{order_id}/fetch"),
            await other.capture(order_id[:128]),
        ]
        assert [error(answer) for answer in answers] == [(404, "item_not_found")] * 3


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, (400, "invalid_parameter")),
        ({"product_id": ""}, (400, "invalid_parameter")),
        ({"product_id": 1}, (400, "invalid_parameter")),
        ({"product_id": "coins", "country_code": "usa"}, (400, "invalid_parameter")),
        ({"product_id": "month"}, (400, "invalid_parameter")),
        ({"product_id": "nothing"}, (422, "config_invalid")),
        ({"product_id": "free"}, (422, "config_invalid")),
        ({"product_id": "elsewhere"}, (422, "config_invalid")),
        ({"product_id": "other_config"}, (422, "config_invalid")),
    ],
)
async def test_an_order_that_cannot_be_made_is_refused(
    wallet: Wallet, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    coins = {"type": "consumable", "asset": "coins", "quantity": 1}
    price = {"amount": 100, "currency": "USD"}
    await put(wallet.server, "products", "free", {**coins, "walletpay": {}})
    await put(wallet.server, "products", "elsewhere", {**coins, "price": price})
    await put(
        wallet.server, "products", "other_config", {**coins, "price": price, "walletpay": {"config": "Other"}}
    )
    assert error(await wallet.post("walletpay/create", body)) == expected
    assert await wallet.rows("select 1 from wallet_orders where uid = $1", wallet.uid) == []


async def test_a_capture_needs_an_id(wallet: Wallet) -> None:
    for body in ({}, {"order_id": ""}, {"order_id": 1}):
        assert error(await wallet.post("walletpay/capture", body)) == (400, "invalid_parameter")


async def test_a_repeated_request_with_one_key_makes_one_order(wallet: Wallet) -> None:
    headers = {"Idempotency-Key": uuid4().hex}
    first, second = [await wallet.post("walletpay/create", {"product_id": "coins"}, **headers) for _ in range(2)]
    assert first == second
    assert len(await wallet.rows("select 1 from wallet_orders where uid = $1", wallet.uid)) == 1
    assert error(await wallet.post("walletpay/create", {"product_id": "month"}, **headers)) == (
        409,
        "invalid_operation",
    )


async def test_a_request_that_is_repeated_after_a_failure_makes_one_order_at_the_platform(wallet: Wallet) -> None:
    headers = {"Idempotency-Key": uuid4().hex}
    await wallet.configure(client_secret=key_of(fault="cut_mid_stream", position="before", times=3))
    assert error(await wallet.post("walletpay/create", {"product_id": "coins"}, **headers)) == (
        400,
        "backend unavailable",
    )
    await wallet.configure(client_secret="sandbox")
    assert (await wallet.post("walletpay/create", {"product_id": "coins"}, **headers))[0] == 200
    assert len({call["key"] for call in wallet.calls("/v2/checkout/orders")}) == 1


async def test_an_order_that_the_platform_refuses_leaves_nothing(wallet: Wallet) -> None:
    await wallet.configure(client_secret=key_of(fault="out_of_quota"))
    assert error(await wallet.post("walletpay/create", {"product_id": "coins"})) == (400, "backend unavailable")
    assert await wallet.rows("select 1 from wallet_orders where uid = $1", wallet.uid) == []


async def test_an_order_that_has_expired_is_voided(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.travel(utc_now() + timedelta(hours=4))
    assert (await fetched(wallet, order["id"]))["status"] == "VOIDED"
    assert error(await wallet.capture(order["id"])) == (400, "invalid_operation")
    _, answer = await wallet.get(f"walletpay/sync/{order['id']}")
    assert answer["walletpay_order"] == {
        "id": order["id"],
        "status": "VOIDED",
        "amount": 199,
        "currency": "usd",
        "approve_link_href": "",
    }
    assert await wallet.rows("select status, check_at from wallet_orders where uid = $1", wallet.uid) == [
        ("VOIDED", None)
    ]


def test_an_order_without_an_id_cannot_be_read() -> None:
    order = WalletOrder("1", "u", "Default", "coins", {}, 1, "USD", "", "", utc_now())
    with pytest.raises(AssertionError):
        _ = order.platform_id


async def test_an_export_names_the_orders_and_subscriptions_of_a_user(wallet: Wallet) -> None:
    order, sub = await wallet.order(), await wallet.subscribe()
    operator, path = Operator(wallet.server), f"users/default/{wallet.uid}/export"
    assert (await operator("POST", path, X_Parley_Reason="asked")).status == 200

    async def url() -> str:
        answer = await operator("POST", f"{path}/link", X_Parley_Reason="asked")
        return str(answer.body["url"]) if answer.status == 200 else ""

    async with working(wallet.server.services):
        await until(url)
    async with wallet.server.http.get(await url()) as response:
        data = await response.json(content_type=None)
    assert [(order["order_id"], order["amount"]) for order in data["wallet_orders"]] == [(order["id"], 199)]
    assert [subscription["subscription_id"] for subscription in data["wallet_subscriptions"]] == [sub["id"]]


async def test_the_platform_is_told_what_the_order_is_for(wallet: Wallet) -> None:
    await wallet.order()
    asked = wallet.calls("/v2/checkout/orders")[0]["body"]
    [unit] = asked["purchase_units"]
    assert (unit["custom_id"], unit["description"]) == (wallet.uid, "100 coins")
    assert unit["amount"] == {"currency_code": "USD", "value": "1.99"}
    assert asked["application_context"]["brand_name"] == "Example"
    assert asked["application_context"]["cancel_url"] == "https://app.example/cancelled"


@pytest.mark.parametrize("path", ["walletpay/create", "walletpay_sub"])
async def test_a_user_creates_only_so_many_payments_in_an_hour(wallet: Wallet, path: str) -> None:
    await put(wallet.server, "limits", "default", {"rates": {"wallets": {"count": 2, "per_s": 3600}}})
    other, body = await another(wallet), {"product_id": "coins" if path.endswith("create") else "month"}
    url, headers = f"{wallet.server.url}/bp/asset/{path}", {"X-Service-Session-Token": wallet.session}
    for left in (1, 0):
        async with wallet.server.http.post(url, headers=headers, json=body) as response:
            assert (response.status, response.headers["RateLimit"].partition(";t=")[0]) == (
                200,
                f'"wallets";r={left}',
            )
            assert response.headers["RateLimit-Policy"] == '"wallets";q=2;w=3600'
    async with wallet.server.http.post(url, headers=headers, json=body) as response:
        assert response.status == 429
        assert 0 < int(response.headers["Retry-After"]) <= 3600
        assert (await response.json())["error"]["error_type"] == "api_rate_limit"
    assert (await other.post(path, body))[0] == 200


@pytest.mark.parametrize("path", ["walletpay/sync/{order}", "walletpay/{order}/fetch", "walletpay_sub/{sub}/sync"])
async def test_a_user_reads_payments_back_only_so_often(wallet: Wallet, path: str) -> None:
    await put(wallet.server, "limits", "default", {"rates": {"payment_reads": {"count": 2, "per_s": 3600}}})
    order, subscription = await wallet.order(), await wallet.subscribe()
    other, full = await another(wallet), path.format(order=order["id"], sub=subscription["id"])
    assert [(await wallet.get(full))[0] for _ in range(3)] == [200, 200, 429]
    asked = len(wallet.calls(""))
    status, answer = await wallet.post("walletpay/capture", {"order_id": order["id"]})
    assert (status, answer["error"]["error_type"]) == (429, "api_rate_limit")
    assert len(wallet.calls("")) == asked
    assert (await other.get(full))[0] == 404
