"""What holds after every step: no access is lost while it is paid, and nothing is granted that was not paid."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.app.callers import ask, token
from tests.app.payments.wallet.schedules.owed import COINS, Books, Subscription, moment
from tests.app.payments.wallet.wallets import ZERO, Wallet

MOMENT = timedelta(seconds=2)
"""Times in answers have no fractions."""


class Access:
    """Watches what the user owns, from step to step."""

    def __init__(self, wallet: Wallet, upgrades_of: Callable[[str], Sequence[str]]) -> None:
        self._wallet = wallet
        self._upgrades_of = upgrades_of
        self._held: set[str] = set()
        """The subscriptions that were paid and valid at the last check."""
        self.first_seen: dict[str, datetime] = {}
        """When each subscription was first valid."""
        self.interrupted: set[str] = set()
        """The subscriptions that were not paid at some check after they were first valid."""

    async def owned(self) -> list[dict[str, Any]]:
        """The user's assets, by the interface for servers, which needs no session."""
        path = f"/bp/server/user/{self._wallet.uid}/asset"
        status, answer = await ask(self._wallet.server, "GET", path, headers=token(scope="assets"))
        assert status == 200, answer
        found: list[dict[str, Any]] = answer["assets"]
        return found

    async def check(self, books: Books, *, coins_used: int) -> None:
        owned = await self.owned()
        now = self._wallet.server.services.clock.now("default")
        most = COINS * len(books.orders) - coins_used
        assert sum(asset["quantity"] for asset in owned if asset["name"] == "coins") <= most
        subscribed = [asset for asset in owned if asset["type"] == "subscription"]
        for asset in subscribed:
            check_within_paid(books, asset)
        valid = {asset["receipt_id"] for asset in subscribed if asset["valid_seconds"] > 0}
        for sub in valid - self.first_seen.keys():
            self.first_seen[sub] = now
        paid = {sub.id for sub in books.subscriptions.values() if self._must_last(books, sub)}
        self.interrupted |= self.first_seen.keys() - paid
        lost = (self._held & paid) - valid
        assert not lost, f"access to {lost} is lost at {now}, although the platform says active and paid"
        self._held = paid & valid

    def _must_last(self, books: Books, sub: Subscription) -> bool:
        """Whether it is active and paid, and no other subscription may replace it."""
        return sub.is_paid and not self._is_replaced(books, sub) and not rivals_of(books, sub)

    def _is_replaced(self, books: Books, sub: Subscription) -> bool:
        """Whether an upgrade of it is paid, or it is one of several paid upgrades."""
        olds = [old for old in books.subscriptions if sub.id in self._upgrades_of(old)]
        others = {new for old in [sub.id, *olds] for new in self._upgrades_of(old)} - {sub.id}
        return any(books.subscriptions[new].payments for new in others)


def check_within_paid(books: Books, asset: dict[str, Any]) -> None:
    """An asset lasts at most as long as its payments can make it, and has at most their units."""
    latest = books.latest_end(asset["receipt_id"], asset["name"])
    assert latest is not None, f"{asset['name']} was granted without a payment"
    assert moment(asset["expire_time"]) <= latest + MOMENT
    assert asset["custom_expire_time"] == ZERO
    plan = books.plans[asset["product_id"]]
    assert asset["product_id"] in {paid.plan_id for paid in books.subscriptions[asset["receipt_id"]].payments}
    assert asset["quantity"] <= asset["total_quantity"] == plan.units


def rivals_of(books: Books, sub: Subscription) -> list[Subscription]:
    """The other subscriptions to a plan of this one, of which only one is kept."""
    plans = plans_of(sub)
    others = [other for other in books.subscriptions.values() if other.id != sub.id and other.payments]
    return [other for other in others if plans & plans_of(other)]


def plans_of(sub: Subscription) -> set[str]:
    return {sub.plan_id, *(payment.plan_id for payment in sub.payments)}
