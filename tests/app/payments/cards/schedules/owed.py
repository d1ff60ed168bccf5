"""What a user is owed by the platform of card payments alone: units, and the ends of subscriptions."""

from typing import Any

from streams.wire.codec import from_rfc3339
from tests.app.payments.cards.shop import Shop

ORDER, COINS = 199, 100
"""The price of an order, and the units that it grants."""
TOLERANCE_S, CHARGED_WITHIN_S = 86_400, 3_600
TAKEN = {"needs_response", "under_review", "lost"}
"""The states of disputes in which the platform has taken the money."""


class Owed:
    """Reads the payments and subscriptions of one customer from the platform."""

    def __init__(self, shop: Shop, customer: str) -> None:
        self._shop = shop
        self._customer = customer

    async def payments(self) -> list[dict[str, Any]]:
        """All payments, the newest first."""
        return await self._shop.listed("payment_intents", customer=self._customer, limit="100")

    async def orders(self) -> list[dict[str, Any]]:
        """The payments of orders that the server has created, the newest first."""
        found = await self.payments()
        return [intent for intent in found if "payment_id" in intent["metadata"] and intent["amount"] == ORDER]

    async def subscriptions(self) -> list[dict[str, Any]]:
        return await self._shop.listed("subscriptions", customer=self._customer, status="all", limit="100")

    async def disputes(self, intent: dict[str, Any]) -> list[str]:
        """The statuses of the disputes of a payment."""
        found = await self._shop.listed("disputes", payment_intent=intent["id"])
        return [dispute["status"] for dispute in found]

    async def not_refunded(self, intent: dict[str, Any]) -> int:
        refunds = await self._shop.listed("refunds", payment_intent=intent["id"])
        left: int = intent["amount"] - sum(refund["amount"] for refund in refunds)
        return left

    async def _taken(self, intent: dict[str, Any]) -> int:
        """What disputes have taken of a payment."""
        found = await self._shop.listed("disputes", payment_intent=intent["id"])
        return sum(dispute["amount"] for dispute in found if dispute["status"] in TAKEN)

    async def _is_lost(self, intent: dict[str, Any]) -> bool:
        return await self.not_refunded(intent) <= await self._taken(intent)

    async def coins(self, sold: set[str]) -> int:
        """The units of the paid orders. Halves of what is taken are rounded up."""
        units = 0
        for intent in await self.orders():
            if intent["status"] == "succeeded" and intent["id"] in sold and not await self._is_lost(intent):
                units += COINS - (2 * COINS * await self._taken(intent) + ORDER) // (2 * ORDER)
        return units

    async def invoices(self) -> list[str]:
        """The keys of the grants of paid invoices."""
        paid = await self._shop.listed("invoices", customer=self._customer, status="paid", limit="100")
        return sorted(f"card:{invoice['id']}" for invoice in paid)

    async def renewals(self) -> list[int]:
        """When the periods of the subscriptions begin and end."""
        lines = [sub["items"]["data"][0] for sub in await self.subscriptions()]
        return sorted(line[f"current_period_{edge}"] for line in lines for edge in ("start", "end"))

    async def _paid(self, sub: dict[str, Any]) -> list[dict[str, Any]]:
        """The paid invoices of a subscription, the newest first."""
        return await self._shop.listed("invoices", subscription=sub["id"], status="paid", limit="100")

    async def _last_is_lost(self, paid: list[dict[str, Any]]) -> bool:
        """Whether nothing is left of the payment of the last invoice."""
        made = await self._shop.listed("invoice_payments", invoice=paid[0]["id"])
        intents = {payment["payment"]["payment_intent"] for payment in made if payment["status"] == "paid"}
        return any([await self._is_lost(intent) for intent in await self.payments() if intent["id"] in intents])

    async def renewing(self) -> set[str]:
        """The subscriptions that are active and paid, and of which no payment has failed."""
        found = set()
        for sub in await self.subscriptions():
            paid = await self._paid(sub)
            if sub["status"] in {"active", "trialing"} and paid and not await self._last_is_lost(paid):
                found.add(sub["id"])
        return found

    async def valid(self, assets: list[dict[str, Any]]) -> set[str]:
        """The subscriptions whose asset the user has."""
        receipts = {asset["receipt_id"] for asset in assets if asset["valid_seconds"] > 0}
        subs = await self.subscriptions()
        return {sub["id"] for sub in subs if receipts & {invoice["id"] for invoice in await self._paid(sub)}}

    async def check_within_paid(self, assets: list[dict[str, Any]]) -> None:
        """An asset lasts at most for its paid periods and the tolerance after the next payment."""
        ends: dict[str, int] = {}
        for sub in await self.subscriptions():
            paid = await self._paid(sub)
            latest = max((invoice["lines"]["data"][0]["period"]["end"] for invoice in paid), default=0)
            ends |= {invoice["id"]: latest for invoice in paid}
        for asset in assets:
            if asset["type"] == "subscription":
                end = from_rfc3339(asset["expire_time"]).timestamp()
                assert end <= ends[asset["receipt_id"]] + CHARGED_WITHIN_S + TOLERANCE_S, asset

    async def lasts(self, assets: list[dict[str, Any]]) -> bool:
        """Whether each asset lasts while the platform renews it, or else until its paid period ends."""
        owned = {asset["receipt_id"]: asset for asset in assets}
        for sub in await self.subscriptions():
            if not (paid := await self._paid(sub)):
                continue
            if (asset := owned.get(paid[0]["id"])) is None:
                return False
            if await self._last_is_lost(paid):
                if asset["valid_seconds"] or not asset["is_refund"]:
                    return False
                continue
            paid_end = paid[0]["lines"]["data"][0]["period"]["end"]
            end, valid = from_rfc3339(asset["expire_time"]).timestamp(), asset["valid_seconds"] > 0
            if asset["is_refund"]:
                return False
            if sub["status"] in {"active", "trialing"}:
                if not valid or end > paid_end + TOLERANCE_S:
                    return False
            elif end != min(paid_end, sub["cancel_at"] or paid_end):
                return False
        return True
