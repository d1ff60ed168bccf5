"""Owners of a subscription share it by a code, and members have it until the owner's ends."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.assets import ledger
from storage.assets.entries import Entry
from storage.assets.share_groups import parse_code
from storage.operators.audit import COMMAND
from tests.app.callers import ask, working
from tests.app.operators import Operator
from tests.calendar.clock import utc_now
from tests.running.servers import Server
from tests.waiting import until

CODES = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
HOUR = timedelta(hours=1)


@pytest.fixture
async def server(shared_server: Server) -> Server:
    await put(shared_server, "products", "pro", {"type": "subscription", "asset": "pro", "period": "P1M"})
    await put(shared_server, "share_groups", "pro", {"quota": 2, "platforms": ["walletpay"]})
    return shared_server


async def put(server: Server, kind: str, name: str, value: dict[str, Any]) -> None:
    await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)


async def buy(
    server: Server, uid: str, *, lasts: timedelta = HOUR, platform: str = "walletpay", name: str = "pro"
) -> str:
    """Let a user own a subscription that was paid at `platform`. Return its id."""
    now = utc_now()
    subscription = f"I-{uid[-8:]}{name}{platform}{lasts}"
    entry = Entry(
        f"wallet:sale:{subscription}", "grant", name, "subscription", subscription,
        quantity=30, starts_at=now, ends_at=now + lasts, platform=platform, product_id="P-1", bp_product_id=name,
        receipt_id="receipt", renews=True,
    )  # fmt: skip
    async with server.services.database.transaction() as conn:
        await ledger.post(conn, "default", uid, entry=entry, now=now, sinks=server.services.sinks)
    return subscription


async def owner(server: Server, **how: Any) -> tuple[str, str]:
    uid, session = await server.login()
    await buy(server, uid, **how)
    return uid, session


async def code(server: Server, session: str, quota: Any = None) -> tuple[int, Any]:
    body = None if quota is None else {"share_code_quota": quota}
    return await post(server, session, "code", body)


async def join(server: Server, session: str, share_code: Any) -> tuple[int, Any]:
    return await post(server, session, "join", {"share_code": share_code})


async def post(server: Server, session: str, what: str, body: Any) -> tuple[int, Any]:
    headers = {"X-Service-Session-Token": session}
    return await ask(server, "POST", f"/bp/asset/share_group/{what}", json=body, headers=headers)


async def owned(server: Server, session: str) -> list[dict[str, Any]]:
    _, answer = await ask(server, "GET", "/bp/asset", headers={"X-Service-Session-Token": session})
    assets: list[dict[str, Any]] = answer["assets"]
    return assets


def error(answer: tuple[int, Any]) -> tuple[int, str]:
    status, body = answer
    return status, body["error"]["error_type"]


async def test_a_member_has_the_asset_of_the_owner(server: Server) -> None:
    (_, session), (_, other) = await owner(server), await server.login()
    status, answer = await code(server, session)
    assert (status, answer["remain_count"]) == (200, 2)
    share_code = answer["share_code"]
    assert len(share_code) == 10
    assert set(share_code) <= set(CODES)
    status, answer = await join(server, other, share_code)
    assert status == 200, answer
    [shared], [own] = answer["assets"], await owned(server, session)
    assert shared["origin"] == "share"
    assert shared["receipt_id"] not in {"", own["receipt_id"]}
    same = (
        "name",
        "type",
        "quantity",
        "total_quantity",
        "expire_time",
        "platform",
        "product_id",
        "is_auto_renewable",
    )
    assert [shared[field] for field in same] == [own[field] for field in same]
    [listed] = await owned(server, other)
    assert listed["valid_seconds"] <= shared["valid_seconds"]
    assert (await code(server, session))[1] == {"share_code": share_code, "remain_count": 1}


async def test_joining_twice_and_in_other_spellings_is_joining_once(server: Server) -> None:
    (_, session), (_, other) = await owner(server), await server.login()
    _, answer = await code(server, session)
    spelling = answer["share_code"].lower().replace("0", "o").replace("1", "l")
    for text in (answer["share_code"], f"{spelling[:5]}-{spelling[5:]}"):
        status, joined = await join(server, other, text)
        assert (status, len(joined["assets"])) == (200, 1)
    assert (await code(server, session))[1]["remain_count"] == 1


async def test_a_renewal_extends_the_asset_of_members_and_its_end_ends_it(server: Server) -> None:
    (uid, session), (_, other) = await owner(server), await server.login()
    _, answer = await code(server, session)
    await join(server, other, answer["share_code"])
    [asset] = await owned(server, session)
    async with server.services.database.transaction() as conn:
        now = utc_now()
        subscription = await conn.fetchval("select subscription from assets where uid = $1", uid)
        renewal = Entry(
            "wallet:sale:2", "grant", "pro", "subscription", subscription, ends_at=now + 2 * HOUR,
            platform="walletpay",
        )  # fmt: skip
        await ledger.post(conn, "default", uid, entry=renewal, now=now, sinks=server.services.sinks)
    [shared] = await owned(server, other)
    assert shared["expire_time"] > asset["expire_time"]
    async with server.services.database.transaction() as conn:
        end = Entry("refund:2", "refund", "pro", "subscription", subscription)
        await ledger.post(conn, "default", uid, entry=end, now=now, sinks=server.services.sinks)
    assert await owned(server, other) == []
    assert error(await join(server, (await server.login())[1], answer["share_code"])) == (404, "item_not_found")


async def test_a_group_has_no_more_members_than_its_quota(server: Server) -> None:
    _, session = await owner(server)
    _, answer = await code(server, session, 2)
    others = [(await server.login())[1] for _ in range(5)]
    joined = await asyncio.gather(*(join(server, other, answer["share_code"]) for other in others))
    assert sorted(status for status, _ in joined) == [200, 200, 400, 400, 400]
    refused = {error((status, body)) for status, body in joined if status != 200}
    assert refused == {(400, "share_group_limit")}
    assert (await code(server, session))[1]["remain_count"] == 0
    assert error(await code(server, session, 1)) == (400, "share_group_limit")


async def test_the_quota_of_an_owner_is_at_most_that_of_the_config(server: Server) -> None:
    _, session = await owner(server)
    assert (await code(server, session, 0))[1]["remain_count"] == 0
    assert error(
        await join(server, (await server.login())[1], (await code(server, session, 0))[1]["share_code"])
    ) == (
        400,
        "share_group_limit",
    )
    status, answer = await code(server, session, 3)
    assert (status, answer["error"]["message"]) == (400, "invalid_parameter: share_code_quota must be at most 2")
    for wrong in (-1, "2", 1.5):
        assert error(await code(server, session, wrong)) == (400, "invalid_parameter")
    product = {"type": "subscription", "asset": "pro", "period": "P1M", "share_quota": 3}
    await put(server, "products", "pro", product)
    assert (await code(server, session, 3))[1]["remain_count"] == 3
    assert (await code(server, session))[1]["remain_count"] == 3


async def test_a_quota_that_an_operator_lowers_holds_for_earlier_codes(server: Server) -> None:
    _, session = await owner(server)
    share_code = (await code(server, session))[1]["share_code"]
    await put(server, "share_groups", "pro", {"quota": 1, "platforms": ["walletpay"]})
    assert (await join(server, (await server.login())[1], share_code))[0] == 200
    assert error(await join(server, (await server.login())[1], share_code)) == (400, "share_group_limit")


async def test_the_code_is_of_the_subscription_that_lasts_longest_of_those_that_may_be_shared(
    server: Server,
) -> None:
    uid, session = await owner(server)
    first = (await code(server, session))[1]["share_code"]
    await buy(server, uid, lasts=2 * HOUR, platform="cardpay")
    await buy(server, uid, lasts=3 * HOUR, name="other")
    assert (await code(server, session))[1]["share_code"] == first
    await buy(server, uid, lasts=4 * HOUR)
    assert (await code(server, session))[1]["share_code"] != first


async def test_a_user_without_a_subscription_has_nothing_to_share(server: Server) -> None:
    _, session = await server.login()
    assert error(await code(server, session)) == (404, "item_not_found")
    _, ended = await owner(server, lasts=timedelta(seconds=-1))
    assert error(await code(server, ended)) == (404, "item_not_found")


async def test_subscriptions_of_other_platforms_and_without_a_config_are_not_shared(server: Server) -> None:
    _, session = await owner(server, platform="cardpay")
    assert error(await code(server, session)) == (400, "asset_request_not_supported")
    _, session = await owner(server, name="other")
    status, answer = await code(server, session)
    assert error((status, answer)) == (422, "config_invalid")
    assert "other" in answer["error"]["message"]


async def test_a_code_whose_asset_may_not_be_shared_any_more_is_refused(server: Server) -> None:
    _, session = await owner(server)
    share_code = (await code(server, session))[1]["share_code"]
    await put(server, "share_groups", "pro", {"quota": 2, "platforms": ["cardpay"]})
    _, other = await server.login()
    assert error(await join(server, other, share_code)) == (404, "item_not_found")
    deleted = await Operator(server)("DELETE", "configs/default/share_groups/pro")
    assert deleted.status < 300
    assert error(await join(server, other, share_code)) == (422, "config_invalid")


async def test_codes_that_cannot_be_used_are_refused(server: Server) -> None:
    _, session = await owner(server)
    share_code = (await code(server, session))[1]["share_code"]
    status, answer = await join(server, session, share_code)
    message = "invalid_parameter: share_code is the user's own"
    assert (status, answer["error"]["message"]) == (400, message)
    for wrong in ("", "ABC", "ABCDEFGHJK0", "UUUUUUUUUU", "\0" * 10, "x" * 65, None, 1234567890):
        assert error(await join(server, session, wrong)) == (400, "invalid_parameter")
    assert error(await post(server, session, "join", {})) == (400, "invalid_parameter")


async def test_wrong_codes_of_a_user_have_a_limit_and_right_ones_have_none(server: Server) -> None:
    (_, session), (_, other) = await owner(server), await server.login()
    share_code = (await code(server, session))[1]["share_code"]
    for _ in range(11):
        assert (await join(server, other, share_code))[0] == 200
    for _ in range(10):
        assert error(await join(server, other, "0000000000")) == (404, "item_not_found")
    assert error(await join(server, other, "0000000000")) == (429, "api_rate_limit")
    assert error(await join(server, other, share_code)) == (429, "api_rate_limit")


async def test_wrong_codes_of_an_address_have_a_limit(server: Server) -> None:
    rates = {"share_code_address": {"count": 3, "per_s": 3600}}
    await put(server, "limits", "default", {"rates": rates})
    for _ in range(3):
        assert error(await join(server, (await server.login())[1], "0000000000")) == (404, "item_not_found")
    assert error(await join(server, (await server.login())[1], "0000000000")) == (429, "api_rate_limit")


async def test_groups_end_with_the_account_of_their_owner(server: Server) -> None:
    (_, session), (member, other) = await owner(server), await server.login()
    share_code = (await code(server, session))[1]["share_code"]
    await join(server, other, share_code)
    for step in ("", "/confirm"):
        path = f"/bp/user/me/deactivate{step}"
        assert (await ask(server, "POST", path, headers={"X-Service-Session-Token": session}))[0] == 200
    assert await owned(server, other) == []
    assert error(await join(server, other, share_code)) == (404, "item_not_found")
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from share_members where uid = $1", member) == 0


async def test_an_export_names_the_groups_of_a_user(server: Server) -> None:
    (uid, session), (member, other) = await owner(server), await server.login()
    share_code = (await code(server, session))[1]["share_code"]
    await join(server, other, share_code)
    async with working(server.services):
        groups = {user_id: await exported(server, user_id) for user_id in (uid, member)}
    assert [(group["name"], group["code"], group["joined"]) for group in groups[uid]] == [
        ("pro", share_code, False)
    ]
    assert [(group["name"], group["code"], group["joined"]) for group in groups[member]] == [("pro", "", True)]


async def exported(server: Server, uid: str) -> list[dict[str, Any]]:
    operator, path = Operator(server), f"users/default/{uid}/export"
    assert (await operator("POST", path, X_Parley_Reason="asked")).status == 200

    async def url() -> str:
        answer = await operator("POST", f"{path}/link", X_Parley_Reason="asked")
        return str(answer.body["url"]) if answer.status == 200 else ""

    await until(url)
    async with server.http.get(await url()) as response:
        groups: list[dict[str, Any]] = (await response.json(content_type=None))["share_groups"]
        return groups


@given(st.text(max_size=14))
def test_a_code_is_ten_characters_of_the_alphabet_or_refused(text: str) -> None:
    try:
        parsed = parse_code(text)
    except ValueError:
        return
    assert len(parsed) == 10
    assert set(parsed) <= set(CODES)
    assert parse_code(parsed) == parsed


@given(st.text(alphabet=CODES, min_size=10, max_size=10))
def test_a_code_is_read_however_it_is_spelled(code: str) -> None:
    assert parse_code(f" {code[:4].lower()}-{code[4:]}".replace("0", "O").replace("1", "i")) == code
