"""What holds once all jobs have run: the assets and the refunds are those that the platform's books imply."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from storage.assets.differences import find_differences
from tests.app.payments.wallet.schedules.access import MOMENT, rivals_of
from tests.app.payments.wallet.schedules.owed import COINS, Books, Payment, Subscription, moment
from tests.app.payments.wallet.schedules.schedule import Schedule

CONTINUOUS = {"grant", "extend", "consume"}
"""The entries of a subscription that was active and paid at all times."""


async def check(schedule: Schedule) -> None:
    books = await schedule.books()
    owned = await schedule.access.owned()
    cancelled = {call["path"].split("/")[-2] for call in schedule.wallet.calls("/cancel")}
    for sub in books.subscriptions.values():
        assets = [asset for asset in owned if asset["receipt_id"] == sub.id]
        replacing = [new for new in schedule.upgrades_of(sub.id) if is_kept(schedule, books, new, cancelled)]
        if replacing or sub.id in cancelled:
            check_replaced(schedule, books, sub, assets, replacing)
        else:
            await check_kept(schedule, books, sub, assets)
    check_upgrades(schedule, books, cancelled)
    coins = sum(asset["quantity"] for asset in owned if asset["name"] == "coins")
    assert coins == max(0, sum(payment.coins for payment in books.orders) - schedule.coins_used)
    await check_records(schedule, books)
    assert [difference async for difference in find_differences(schedule.wallet.server.services.database)] == []


def is_kept(schedule: Schedule, books: Books, sub_id: str, cancelled: set[str]) -> bool:
    """Whether a subscription was paid, and not refunded in full because another one was kept.

    One that was upgraded at once is refunded in full too.
    """
    payments = books.subscriptions[sub_id].payments
    if not payments:
        return False
    is_refunded = sub_id in cancelled and all(paid.is_lost and paid.by_call for paid in payments)
    return not is_refunded or any(is_kept(schedule, books, new, cancelled) for new in schedule.upgrades_of(sub_id))


async def check_kept(schedule: Schedule, books: Books, sub: Subscription, assets: list[dict[str, Any]]) -> None:
    """Each asset of the subscription lasts as its payments and its state imply. The server has refunded nothing."""
    assert sum(payment.by_call for payment in sub.payments) == 0
    assert {asset["name"] for asset in assets} == {books.asset_of(payment) for payment in sub.payments}
    for asset in assets:
        last = books.last_of_asset(sub, asset["name"])
        assert last is not None
        renews = last is sub.last and sub.status in {"ACTIVE", "SUSPENDED"}
        assert (asset["product_id"], asset["is_auto_renewable"]) == (last.plan_id, renews), asset
        assert (asset["sub_canceled"], asset["is_refund"]) == (not renews, last.is_lost), asset
        end = books.end(sub, asset["name"])
        if end is None:
            assert asset["valid_seconds"] == 0
            continue
        assert abs(moment(asset["expire_time"]) - end) < MOMENT, (asset, end)
        if asset["valid_seconds"]:
            used = sum(use.units for use in schedule.used if use.payment == last.id)
            assert asset["quantity"] == books.plans[last.plan_id].units - used
    await check_entries(schedule, books, sub)


async def check_entries(schedule: Schedule, books: Books, sub: Subscription) -> None:
    """If the subscription was paid at all times, no entry says that an asset has ended in between."""
    was_paid = sub.id in schedule.access.first_seen and sub.id not in schedule.access.interrupted
    if not was_paid or any(payment.is_lost for payment in sub.payments):
        return
    statement = "select kind, ends_at from asset_entries where subscription = $1 order by entry_id"
    entries = await schedule.wallet.rows(statement, sub.id)
    changed = len({books.asset_of(payment) for payment in sub.payments}) > 1
    assert {kind for kind, _ in entries} <= CONTINUOUS | ({"cancel", "resume"} if changed else set())
    assert changed or all(ends_at is not None for kind, ends_at in entries if kind == "extend")


def check_replaced(
    schedule: Schedule, books: Books, sub: Subscription, assets: list[dict[str, Any]], replacing: list[str]
) -> None:
    """The asset has ended, the subscription is cancelled, and what was unused is refunded."""
    assert all(asset["valid_seconds"] == 0 for asset in assets)
    assert sub.status in {"CANCELLED", "EXPIRED"}
    if replacing:
        new = books.subscriptions[replacing[0]]
        begun, seen = new.payments[0].at, schedule.access.first_seen.get(new.id, schedule.jobs.now)
        for payment in sub.payments:
            check_refund(schedule, books, sub, payment, begun=begun, seen=seen)
    elif sub.id not in schedule.happenings.suspended:
        assert rivals_of(books, sub) or any(sub.id == upgrade.new for upgrade in schedule.upgrades)
        assert all(payment.is_lost for payment in sub.payments)
    else:
        assert rivals_of(books, sub)


def check_refund(
    schedule: Schedule, books: Books, sub: Subscription, payment: Payment, *, begun: datetime, seen: datetime
) -> None:
    """The refund is that of the time and the units that were unused when the new subscription began.

    That is between its payment and the first time that the user had it.
    """
    most = unused(schedule, books, sub, payment, at=begun)
    assert payment.by_call <= most + 1, (payment, most)
    if not (payment.taken or payment.by_hand):
        assert payment.by_call >= unused(schedule, books, sub, payment, at=seen + timedelta(minutes=1)) - 1


def unused(schedule: Schedule, books: Books, sub: Subscription, payment: Payment, *, at: datetime) -> float:
    """The part of a payment that is unused at an instant, of its time and its units."""
    if payment.at >= at:
        return payment.amount
    if any(payment.at < later.at <= at for later in sub.payments):
        return 0
    end, units = books.paid_until(payment), books.plans[payment.plan_id].units
    of_time = max((end - at) / (end - payment.at), 0)
    used = sum(use.units for use in schedule.used if use.payment == payment.id and use.at <= at)
    of_units = max(units - used, 0) / units if units else 1
    return payment.amount * min(of_time, of_units)


def check_upgrades(schedule: Schedule, books: Books, cancelled: set[str]) -> None:
    """Of the upgrades of a subscription that were paid, one is kept."""
    for old in {upgrade.old for upgrade in schedule.upgrades}:
        paid = [new for new in schedule.upgrades_of(old) if books.subscriptions[new].payments]
        kept = [new for new in paid if is_kept(schedule, books, new, cancelled)]
        assert len(kept) <= 1, f"{old} has several upgrades that are kept: {kept}"


async def check_records(schedule: Schedule, books: Books) -> None:
    """No event is entered twice, nothing is pending, and nothing was charged that no request has created."""
    wallet = schedule.wallet
    counts = Counter(key for key, _ in await wallet.entries())
    assert not [key for key, count in counts.items() if count > 1]
    created = await wallet.rows("select subscription_id from wallet_subscriptions where uid = $1", wallet.uid)
    assert {sub for (sub,) in created} == set(schedule.subs) == set(books.subscriptions)
    assert {payment.of for payment in books.payments.values()} <= {*schedule.orders, *schedule.subs}
    statement = "select count(*) from wallet_orders where uid = $1 and status = 'NEW'"
    assert await wallet.rows(statement, wallet.uid) == [(0,)]
    [(orders,)] = await wallet.rows("select count(*) from wallet_orders where uid = $1", wallet.uid)
    assert orders <= schedule.bought + len(schedule.keys)
    statement = "select state from wallet_upgrades join wallet_subscriptions on row_id = new_row where uid = $1"
    states = {state for (state,) in await wallet.rows(statement, wallet.uid)}
    assert states <= {"done", "abandoned", "awaiting_approval"}
    pending = """
        select 1 from wallet_refunds join wallet_subscriptions s on s.row_id = subscription_row
        where state in ('pending', 'accepted') and uid = $1
    """
    assert await wallet.rows(pending, wallet.uid) == []
    assert all(payment.coins <= COINS for payment in books.orders)
