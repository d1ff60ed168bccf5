"""A subscription replaces another one: its asset is granted, and the old one is cancelled and refunded in part."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from app.payments.wallet.proration import unused_part
from streams.wire.codec import from_rfc3339
from streams.wire.money import Money
from streams.wire.period import Period
from tests.app.assets.share_codes import join_code, share_code
from tests.app.callers import working
from tests.app.payments.wallet.wallets import YEARLY, Wallet, add_weekly, another, error, put
from tests.calendar.clock import utc_now
from tests.calendar.hard_instants import walk
from tests.waiting import until
from vendors.sandbox.faults import key_of

STATES = "select state from wallet_upgrades u join wallet_subscriptions s on s.row_id = u.new_row where s.uid = $1"


async def started(wallet: Wallet, sub_id: str, product: str = "year") -> dict[str, Any]:
    status, answer = await wallet.upgrade(sub_id, product)
    assert status == 200, answer
    sub: dict[str, Any] = answer["walletpay_sub"]
    return sub


async def approved(wallet: Wallet, sub_id: str, product: str = "year") -> dict[str, Any]:
    """Upgrade to a product and return the new subscription, which is active and applied."""
    new = await started(wallet, sub_id, product)
    await wallet.approve(new["approve_link_href"])
    return await synced(wallet, new["id"])


async def synced(wallet: Wallet, sub_id: str) -> dict[str, Any]:
    status, answer = await wallet.get(f"walletpay_sub/{sub_id}/sync_upgrade")
    assert status == 200, answer
    sub: dict[str, Any] = answer["walletpay_sub"]
    return sub


async def states(wallet: Wallet) -> list[str]:
    return sorted(state for (state,) in await wallet.rows(STATES, wallet.uid))


async def settled(wallet: Wallet, *expected: str) -> None:
    async def done() -> bool:
        return await states(wallet) == sorted(expected)

    async with working(wallet.server.services):
        await until(done)


async def at_platform(wallet: Wallet, sub_id: str) -> tuple[str, list[str]]:
    """The status of a subscription at the platform, and those of its payments."""
    sub = await wallet.platform("GET", f"/v1/billing/subscriptions/{sub_id}")
    query = "start_time=2020-01-01T00:00:00Z&end_time=2099-01-01T00:00:00Z"
    found = await wallet.platform("GET", f"/v1/billing/subscriptions/{sub_id}/transactions?{query}")
    return sub["status"], [
        payment["status"] for payment in sorted(found["transactions"], key=lambda payment: payment["time"])
    ]


async def test_an_upgrade_replaces_the_subscription_and_refunds_what_is_unused(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    paid_at = (await wallet.sync(old))[1]["walletpay_sub"]["last_payment_ts"]
    await wallet.travel(utc_now() + timedelta(days=10))
    status, answer = await wallet.upgrade(old)
    new = answer["walletpay_sub"]
    assert (status, new["status"], new["plan_id"], new["bp_product_id"]) == (
        200,
        "APPROVAL_PENDING",
        YEARLY,
        "year",
    )
    assert new["id"] != old
    assert [asset["bp_product_id"] for asset in answer["assets"]] == ["month"]
    await wallet.approve(new["approve_link_href"])
    active = await synced(wallet, new["id"])
    assert (active["status"], active["latest_transaction"]["amount"]) == ("ACTIVE", 9900)
    pro = (await wallet.assets())["pro"]
    assert (pro["bp_product_id"], pro["origin"], pro["receipt_id"]) == ("year", "upgrade", new["id"])
    assert pro["valid_seconds"] > 364 * 86_400
    assert await wallet.kinds() == ["grant", "end", "grant"]
    await settled(wallet, "done")
    assert await at_platform(wallet, old) == ("CANCELLED", ["PARTIALLY_REFUNDED"])
    [instant] = await wallet.rows("select superseded_at from wallet_subscriptions where subscription_id = $1", old)
    start = datetime.fromtimestamp(paid_at, UTC)
    due = unused_part(Money(999, "USD"), start=start, end=Period.parse("P1M").after(start), at=instant[0])
    [refund] = wallet.calls("/refund")
    assert refund["body"] == {"amount": {"total": due.decimal, "currency": "USD"}}
    assert 600 < due.amount < 700
    paths = [call["path"].rpartition("/")[2] for call in wallet.calls("")]
    assert paths.index("cancel") < paths.index("refund")
    old_view = (await wallet.sync(old))[1]["walletpay_sub"]
    assert (old_view["status"], old_view["latest_transaction"]["status"]) == ("CANCELLED", "PARTIALLY_REFUNDED")
    assert (await wallet.assets())["pro"]["bp_product_id"] == "year"


# When a month that costs 9.99 ends, and what is refunded of it after seven days, when 21 to 24 days are left.
MONTH_ENDS_AND_REFUND = {
    "2027-01-28T12:00:00Z": ("2027-02-28T12:00:00Z", "7.73"),
    "2027-01-29T12:00:00Z": ("2027-02-28T12:00:00Z", "7.66"),
    "2027-01-30T12:00:00Z": ("2027-02-28T12:00:00Z", "7.58"),
    "2027-01-31T12:00:00Z": ("2027-02-28T12:00:00Z", "7.49"),
    "2027-02-28T12:00:00Z": ("2027-03-28T12:00:00Z", "7.49"),
    "2027-03-14T07:00:00Z": ("2027-04-14T07:00:00Z", "7.73"),
    "2027-03-28T01:00:00Z": ("2027-04-28T01:00:00Z", "7.73"),
    "2027-03-31T12:00:00Z": ("2027-04-30T12:00:00Z", "7.66"),
    "2027-10-31T01:00:00Z": ("2027-11-30T01:00:00Z", "7.66"),
    "2027-11-07T06:00:00Z": ("2027-12-07T06:00:00Z", "7.66"),
    "2027-12-31T23:59:59Z": ("2028-01-31T23:59:59Z", "7.73"),
    "2028-01-01T00:00:00Z": ("2028-02-01T00:00:00Z", "7.73"),
    "2028-02-29T12:00:00Z": ("2028-03-29T12:00:00Z", "7.58"),
}
BUSY_S = 60
"""The clock goes on during the test, by less than this, in which no refund of the table changes by a cent."""


async def test_an_upgrade_of_a_month_from_each_hard_instant_is_refunded(wallet: Wallet) -> None:
    async with working(wallet.server.services):
        for instant, (ends, refund) in walk(MONTH_ENDS_AND_REFUND):
            buyer = await another(wallet)
            await buyer.travel(instant)
            old = await buyer.subscribed()
            [(ends_at,)] = await buyer.rows("select ends_at from asset_entries where uid = $1", buyer.uid)
            assert timedelta() <= ends_at - from_rfc3339(ends) < timedelta(seconds=BUSY_S)
            await buyer.travel(instant + timedelta(days=7))
            await approved(buyer, old)
            await until(lambda buyer=buyer: is_done(buyer))
            assert [call["body"]["amount"]["total"] for call in wallet.calls("/refund")][-1] == refund
    assert len(wallet.calls("/refund")) == len(MONTH_ENDS_AND_REFUND)


async def is_done(wallet: Wallet) -> bool:
    return await states(wallet) == ["done"]


async def test_the_same_target_again_is_the_same_subscription(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    ids = {(await started(wallet, old))["id"] for _ in range(3)}
    answers = await asyncio.gather(*(wallet.upgrade(old) for _ in range(4)))
    ids |= {answer["walletpay_sub"]["id"] for _, answer in answers}
    assert len(ids) == 1
    assert await states(wallet) == ["awaiting_approval"]


async def test_the_same_target_after_its_approval_shows_that_it_is_active(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    new = await started(wallet, old)
    await wallet.approve(new["approve_link_href"])
    again = await started(wallet, old)
    assert (again["id"], again["status"]) == (new["id"], "ACTIVE")
    assert await wallet.kinds() == ["grant", "end", "grant"]
    assert error(await wallet.upgrade(old)) == (400, "invalid_operation")


async def test_another_target_abandons_the_first(wallet: Wallet) -> None:
    await add_weekly(wallet)
    old = await wallet.subscribed()
    first, second = await started(wallet, old), await started(wallet, old, "week")
    assert first["id"] != second["id"]
    assert await states(wallet) == ["abandoned", "awaiting_approval"]
    await wallet.approve(second["approve_link_href"])
    assert (await synced(wallet, old))["id"] == second["id"]
    await settled(wallet, "abandoned", "done")
    assert (await wallet.assets())["pro"]["bp_product_id"] == "week"


async def test_of_two_approved_upgrades_the_later_one_is_cancelled_and_refunded_in_full(wallet: Wallet) -> None:
    await add_weekly(wallet)
    old = await wallet.subscribed()
    first, second = await started(wallet, old), await started(wallet, old, "week")
    await wallet.approve(first["approve_link_href"])
    assert (await synced(wallet, first["id"]))["status"] == "ACTIVE"
    await wallet.approve(second["approve_link_href"])
    await synced(wallet, second["id"])
    await settled(wallet, "abandoned", "done")

    async def refunded() -> bool:
        return await at_platform(wallet, second["id"]) == ("CANCELLED", ["REFUNDED"])

    async with working(wallet.server.services):
        await until(refunded)
    assert (await at_platform(wallet, first["id"]))[0] == "ACTIVE"
    assert await at_platform(wallet, old) == ("CANCELLED", ["REFUNDED"])
    pro = (await wallet.assets())["pro"]
    assert (pro["bp_product_id"], pro["valid_seconds"] > 0) == ("year", True)
    assert await wallet.kinds() == ["grant", "end", "grant", "cancel"]


async def test_a_renewal_while_the_approval_waits_is_refunded_too(wallet: Wallet) -> None:
    await wallet.travel(datetime(2027, 3, 15, 9, tzinfo=UTC))  # The renewal is at 10:00, after the first period.
    old = await wallet.subscribed()
    new = await started(wallet, old)
    await wallet.renew(old)
    await wallet.approve(new["approve_link_href"])
    assert (await synced(wallet, new["id"]))["status"] == "ACTIVE"
    assert await wallet.kinds() == ["grant", "grant", "end", "grant"]
    await settled(wallet, "done")
    status, payments = await at_platform(wallet, old)
    assert (status, payments[0]) == ("CANCELLED", "COMPLETED")
    [refund] = wallet.calls("/refund")
    assert refund["body"]["amount"]["total"] in {"9.99", "9.98"}


async def test_a_renewal_before_the_old_one_is_cancelled_is_refunded_in_full(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    await approved(wallet, old)
    await wallet.renew(old)
    await settled(wallet, "done")
    status, payments = await at_platform(wallet, old)
    assert (status, payments[1]) == ("CANCELLED", "REFUNDED")
    assert len(wallet.calls("/refund")) == 2
    assert (await wallet.sync(old))[0] == 200
    assert (await wallet.assets())["pro"]["bp_product_id"] == "year"


async def test_a_payment_that_was_refunded_in_part_is_not_refunded_beyond_its_rest(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    sale = (await wallet.sync(old))[1]["walletpay_sub"]["latest_transaction"]["id"]
    await wallet.control("refund", payment_id=sale, value="9.00")
    await wallet.travel(utc_now() + timedelta(minutes=5))
    await wallet.find_missed_events()
    async with working(wallet.server.services):
        await until(lambda: wallet.rows("select 1 from payment_reversals where payment_id = $1", sale))
    await approved(wallet, old)
    await settled(wallet, "done")
    assert wallet.calls("/refund")[-1]["body"]["amount"]["total"] == "0.99"


async def test_an_old_subscription_that_has_ended_meanwhile_is_replaced_too(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    new = await started(wallet, old)
    await wallet.platform("POST", f"/v1/billing/subscriptions/{old}/cancel", {"reason": "enough"})
    await wallet.approve(new["approve_link_href"])
    await synced(wallet, old)
    await settled(wallet, "done")
    assert (await at_platform(wallet, old))[0] == "CANCELLED"
    assert len(wallet.calls("/refund")) == 1
    assert wallet.calls("/cancel") == []


async def test_an_upgrade_can_be_upgraded(wallet: Wallet) -> None:
    await add_weekly(wallet)
    old = await wallet.subscribed()
    new = await approved(wallet, old)
    await settled(wallet, "done")
    last = await approved(wallet, new["id"], "week")
    await settled(wallet, "done", "done")
    assert (await at_platform(wallet, new["id"]))[0] == "CANCELLED"
    assert (await synced(wallet, new["id"]))["id"] == last["id"]
    assert (await wallet.assets())["pro"]["bp_product_id"] == "week"


async def test_sync_upgrade_without_an_upgrade_syncs(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"])
    assert (await synced(wallet, sub["id"]))["status"] == "ACTIVE"


async def test_members_of_a_share_group_keep_the_asset_after_an_upgrade(wallet: Wallet) -> None:
    await put(wallet.server, "share_groups", "pro", {"quota": 2, "platforms": ["walletpay"]})
    old = await wallet.subscribed()
    code = await share_code(wallet.server, wallet.session)
    _, member = await wallet.server.login()
    await join_code(wallet.server, member, code)
    await approved(wallet, old)
    assert await share_code(wallet.server, wallet.session) == code
    [shared] = await join_code(wallet.server, member, code)
    assert (shared["bp_product_id"], shared["origin"]) == ("year", "share")


async def test_a_new_subscription_that_was_not_approved_in_time_is_made_anew(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    new = await started(wallet, old)
    await wallet.travel(utc_now() + timedelta(hours=73))
    await wallet.reconcile()
    again = await started(wallet, old)
    assert (again["id"] != new["id"], again["status"]) == (True, "APPROVAL_PENDING")
    assert await states(wallet) == ["abandoned", "awaiting_approval"]


async def test_refunds_and_the_end_are_repeated_with_their_keys_until_the_platform_answers(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    await approved(wallet, old)
    await wallet.configure(client_secret=key_of(fault="cut_mid_stream", position="before", rate=0.5, seed=3))
    await settled(wallet, "done")
    assert (await at_platform(wallet, old))[0] == "CANCELLED"
    assert len({call["key"] for call in wallet.calls("/refund")}) == 1
    assert len({call["key"] for call in wallet.calls("/cancel")}) <= 1


async def test_a_refund_that_the_platform_refuses_is_reported(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    sale = (await wallet.sync(old))[1]["walletpay_sub"]["latest_transaction"]["id"]
    await approved(wallet, old)
    await wallet.control("refund", payment_id=sale, value="9.00")  # Which no webhook has told.
    await settled(wallet, "done")
    statement = "select subject, detail from payment_mismatches where kind = 'refund_refused' and subject = $1"
    [(subject, detail)] = await wallet.rows(statement, sale)
    assert subject == sale
    assert "USD" in detail
