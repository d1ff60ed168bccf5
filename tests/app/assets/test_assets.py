"""Assets follow from the entries of the ledger, and operators grant and adjust them."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from streams.wire.codec import from_rfc3339
from streams.wire.ids import new_id
from tests.app.callers import ask, token
from tests.app.operator_calls import call
from tests.calendar.clock import utc_now
from tests.running.servers import ADMIN_TOKEN, Server

PRODUCTS: dict[str, dict[str, Any]] = {
    "coins": {"type": "consumable", "asset": "coins", "quantity": 100},
    "skin": {"type": "nonconsumable", "asset": "skin"},
    "pro": {"type": "subscription", "asset": "pro", "period": "P1M", "quantity": 30},
}
ZERO = "0001-01-01T00:00:00Z"


@pytest.fixture
async def server(shared_server: Server) -> Server:
    configs = shared_server.services.configs
    for name, product in PRODUCTS.items():
        await configs.put("default", "products", name, product, author="test", origin=COMMAND)
    return shared_server


async def owned(server: Server, session: str) -> dict[str, Any]:
    status, answer = await ask(server, "GET", "/bp/asset", headers={"X-Service-Session-Token": session})
    assert status == 200, answer
    return {asset["name"]: asset for asset in answer["assets"]}


async def grant(server: Server, uid: str, product: str) -> list[dict[str, Any]]:
    path = f"/admin/api/users/default/{uid}/assets"
    status, answer = await call(server, "POST", path, {"product": product}, reason="support", key=new_id())
    assert status == 200, answer
    assets: list[dict[str, Any]] = answer["assets"]
    return assets


async def adjust(server: Server, uid: str, **change: Any) -> tuple[int, Any]:
    path = f"/admin/api/users/default/{uid}/assets"
    return await call(server, "PATCH", path, change, reason="support", key=new_id())


async def test_a_new_user_owns_nothing(server: Server) -> None:
    _, session = await server.login()
    assert await owned(server, session) == {}


async def test_units_of_a_consumable_add_up(server: Server) -> None:
    uid, session = await server.login()
    await grant(server, uid, "coins")
    await grant(server, uid, "coins")
    coins = (await owned(server, session))["coins"]
    assert coins["quantity"] == 200
    assert coins["type"] == "consumable"
    assert (coins["is_consumable"], coins["is_auto_renewable"], coins["is_refund"]) == (True, False, False)
    assert (coins["valid_seconds"], coins["expire_time"], coins["sub_canceled_ts"]) == (0, ZERO, 0)
    assert (coins["bp_product_id"], coins["origin"], coins["product_id"]) == ("coins", "admin", "")


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        ("2027-01-28T12:00:00Z", "2027-02-28T12:00:00Z"),
        ("2027-01-31T12:00:00Z", "2027-02-28T12:00:00Z"),
        ("2028-01-31T12:00:00Z", "2028-02-29T12:00:00Z"),
        ("2027-03-31T12:00:00Z", "2027-04-30T12:00:00Z"),
        ("2027-12-15T12:00:00Z", "2028-01-15T12:00:00Z"),
    ],
)
async def test_a_subscription_lasts_for_its_period(server: Server, begins: str, ends: str) -> None:
    assert (await ask(server, "POST", "/dev/clock", json={"app": "default", "at": begins}))[0] == 200
    uid, session = await server.login()
    await grant(server, uid, "pro")
    pro = (await owned(server, session))["pro"]
    end = from_rfc3339(pro["expire_time"])
    assert timedelta(0) <= end - from_rfc3339(ends) < timedelta(minutes=1)
    left_s = (end - server.services.clock.now("default")).total_seconds()
    assert pro["valid_seconds"] == pytest.approx(left_s, abs=60)
    assert (pro["quantity"], pro["total_quantity"], pro["is_consumable"]) == (30, 30, True)
    assert (pro["is_trial_period"], pro["is_auto_renewable"], pro["custom_expire_time"]) == (False, False, ZERO)


async def test_a_subscription_that_has_ended_is_listed_without_its_units(server: Server) -> None:
    uid, session = await server.login()
    (pro,) = await grant(server, uid, "pro")
    past = (utc_now() - timedelta(seconds=1)).isoformat()
    assert (await adjust(server, uid, name="pro", subscription=pro["receipt_id"], ends_at=past))[0] == 200
    pro = (await owned(server, session))["pro"]
    assert (pro["valid_seconds"], pro["quantity"], pro["total_quantity"]) == (0, 0, 30)


async def test_an_operator_sets_the_end_of_a_subscription(server: Server) -> None:
    uid, session = await server.login()
    (pro,) = await grant(server, uid, "pro")
    later = utc_now().replace(microsecond=0) + timedelta(days=400)
    subscription = pro["receipt_id"]
    status, answer = await adjust(server, uid, name="pro", subscription=subscription, ends_at=later.isoformat())
    assert status == 200, answer
    after = (await owned(server, session))["pro"]
    assert datetime.fromisoformat(after["custom_expire_time"]) == later
    assert after["expire_time"] == pro["expire_time"]
    assert after["valid_seconds"] > 399 * 86_400


async def test_an_adjustment_takes_no_more_than_there_is(server: Server) -> None:
    uid, session = await server.login()
    await grant(server, uid, "coins")
    assert (await adjust(server, uid, name="coins", quantity=-30))[0] == 200
    assert (await owned(server, session))["coins"]["quantity"] == 70
    assert (await adjust(server, uid, name="coins", quantity=-300))[0] == 200
    assert (await owned(server, session))["coins"]["quantity"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "coins"}, "exactly one of quantity and ends_at is required"),
        ({"name": "coins", "quantity": 1, "ends_at": "2030-01-01T00:00:00Z"}, "exactly one of"),
        ({"name": "coins", "ends_at": "2030-01-01T00:00:00Z"}, "ends_at is only for subscriptions"),
        ({"name": "skin", "quantity": 1}, "quantity is not for nonconsumables"),
        ({"name": "coins", "quantity": "1"}, "quantity must be an integer"),
    ],
)
async def test_a_faulty_adjustment_names_its_fault(server: Server, change: dict[str, Any], message: str) -> None:
    uid, _ = await server.login()
    await grant(server, uid, "coins")
    await grant(server, uid, "skin")
    status, answer = await adjust(server, uid, **change)
    assert (status, answer["error"]["error_type"]) == (400, "invalid_parameter")
    assert message in answer["error"]["message"]


async def test_unknown_users_assets_and_products_are_named(server: Server) -> None:
    uid, _ = await server.login()
    status, answer = await call(server, "GET", "/admin/api/users/default/nobody/assets")
    assert (status, answer["error"]["message"]) == (404, "item_not_found: user nobody does not exist")
    status, answer = await adjust(server, uid, name="gold", quantity=1)
    assert (status, answer["error"]["message"]) == (404, "item_not_found: asset gold does not exist")
    path = f"/admin/api/users/default/{uid}/assets"
    status, answer = await call(server, "POST", path, {"product": "gold"}, reason="support", key=uid)
    assert answer["error"]["error_type"] == "config_invalid"
    assert "gold" in answer["error"]["message"]


async def test_the_ledger_lists_what_has_happened(server: Server) -> None:
    uid, _ = await server.login()
    await grant(server, uid, "coins")
    await adjust(server, uid, name="coins", quantity=-30)
    status, answer = await call(server, "GET", f"/admin/api/users/default/{uid}/assets/entries")
    assert status == 200
    kinds = [(entry["kind"], entry["quantity"], entry["channel"]) for entry in answer["entries"]]
    assert kinds == [("adjust", -30, "operator"), ("grant", 100, "operator")]
    _, audit = await call(server, "GET", f"/admin/api/audit?kind=user&name={uid}")
    rows = {f"admin:{row['audit_id']}": (row["action"], row["reason"]) for row in audit["changes"]}
    assert [rows[entry["key"]] for entry in answer["entries"]] == [
        ("asset.adjust", "support"),
        ("asset.grant", "support"),
    ]


async def test_the_audit_log_has_an_asset_before_and_after_each_change(server: Server) -> None:
    uid, _ = await server.login()
    (pro,) = await grant(server, uid, "pro")
    ends = {"subscription": pro["receipt_id"], "ends_at": "2030-01-01T00:00:00Z"}
    assert (await adjust(server, uid, name="pro", **ends))[0] == 200
    _, answer = await call(server, "GET", f"/admin/api/audit?kind=user&name={uid}")
    adjusted, granted = answer["changes"]
    paid = {"asset": "pro", "quantity": 30, "ends_at": pro["expire_time"]}
    assert (granted.get("before"), granted["after"]) == (None, {**paid, "change": {"product": "pro"}})
    after = {"asset": "pro", "quantity": 30, "ends_at": ends["ends_at"]}
    assert adjusted["before"] == paid
    assert adjusted["after"] == {**after, "change": {"name": "pro", "quantity": 0, **ends}}


@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        ("GET", "assets", None),
        ("POST", "assets", {"product": "coins"}),
        ("PATCH", "assets", {"name": "coins", "quantity": 1}),
        ("GET", "assets/entries", None),
        ("POST", "export", None),
    ],
)
async def test_the_app_that_does_not_exist_is_named_before_the_user(
    server: Server, method: str, rest: str, body: Any
) -> None:
    uid, _ = await server.login()
    for app, user, missing in (("nope", uid, "app nope"), ("default", "nobody", "user nobody")):
        path = f"/admin/api/users/{app}/{user}/{rest}"
        status, answer = await call(server, method, path, body, reason="support", key="k")
        error = (404, f"item_not_found: {missing} does not exist")
        assert (status, answer["error"]["message"]) == error


@pytest.mark.parametrize("rest", ["export", "erasure_receipt"])
async def test_an_export_or_receipt_of_an_app_that_does_not_exist_names_the_app(server: Server, rest: str) -> None:
    uid, _ = await server.login()
    status, answer = await call(server, "GET", f"/admin/api/users/nope/{uid}/{rest}")
    assert (status, answer["error"]["message"]) == (404, "item_not_found: app nope does not exist")


async def test_a_change_by_an_operator_needs_a_reason(server: Server) -> None:
    uid, session = await server.login()
    path = f"/admin/api/users/default/{uid}/assets"
    status, answer = await call(server, "POST", path, {"product": "coins"}, reason="")
    assert (status, answer["error"]["message"]) == (400, "invalid_parameter: X-Parley-Reason is required")
    assert await owned(server, session) == {}


@pytest.mark.parametrize("change", [("POST", {"product": "coins"}), ("PATCH", {"name": "coins", "quantity": 5})])
async def test_a_grant_or_adjustment_without_a_key_changes_nothing(server: Server, change: tuple[str, Any]) -> None:
    uid, session = await server.login()
    await grant(server, uid, "coins")
    method, body = change
    status, answer = await call(server, method, f"/admin/api/users/default/{uid}/assets", body, reason="support")
    assert (status, answer["error"]["message"]) == (400, "invalid_parameter: Idempotency-Key is required")
    assert (await owned(server, session))["coins"]["quantity"] == 100


async def test_a_repeated_adjustment_is_made_once_and_says_what_was_taken(server: Server) -> None:
    uid, session = await server.login()
    await grant(server, uid, "coins")
    path, change = f"/admin/api/users/default/{uid}/assets", {"name": "coins", "quantity": -1000}
    first = await call(server, "PATCH", path, change, reason="support", key="once")
    assert (first[0], first[1]["changed"]) == (200, -100), "the user had no more"
    await grant(server, uid, "coins")
    assert await call(server, "PATCH", path, change, reason="support", key="once") == first
    assert (await owned(server, session))["coins"]["quantity"] == 100
    reused = await call(server, "PATCH", path, {**change, "quantity": -1}, reason="support", key="once")
    assert reused[0] == 409
    _, answer = await call(server, "GET", f"/admin/api/audit?kind=user&name={uid}&action=asset.adjust")
    assert len(answer["changes"]) == 1


async def test_a_repeated_grant_with_one_key_grants_once(server: Server) -> None:
    uid, session = await server.login()
    path = f"{server.url}/admin/api/users/default/{uid}/assets"
    headers = {
        "Authorization": f"Bearer {ADMIN_TOKEN}",
        "Idempotency-Key": f"grant-{uid}",
        "X-Parley-Reason": "support",
    }

    async def post() -> int:
        body = {"product": "coins"}
        async with server.http.post(path, json=body, headers=headers) as response:
            return response.status

    assert {200, 409} >= set(await asyncio.gather(*(post() for _ in range(5))))
    assert await post() == 200
    assert (await owned(server, session))["coins"]["quantity"] == 100


async def test_an_app_server_lists_the_assets_of_a_user(server: Server) -> None:
    uid, _ = await server.login()
    await grant(server, uid, "skin")
    path = f"/bp/server/user/{uid}/asset"
    status, answer = await ask(server, "GET", path, headers=token(scope="assets"))
    assert status == 200, answer
    assert [asset["name"] for asset in answer["assets"]] == ["skin"]
    status, _ = await ask(server, "GET", path, headers=token(scope="account"))
    assert status == 403


async def test_a_deactivated_user_keeps_the_history_and_no_assets(server: Server) -> None:
    uid, session = await server.login()
    await grant(server, uid, "coins")
    for step in ("", "/confirm"):
        headers = {"X-Service-Session-Token": session}
        status, answer = await ask(server, "POST", f"/bp/user/me/deactivate{step}", headers=headers)
        assert status == 200, answer
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from assets where uid = $1", uid) == 0
    _, answer = await call(server, "GET", f"/admin/api/users/default/{uid}/assets/entries")
    assert [entry["kind"] for entry in answer["entries"]] == ["grant"]
