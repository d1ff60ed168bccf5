"""What happens at the platform without the server: payments, refunds, disputes, changes of subscriptions.

A step chooses one of what there is by a number, so that each step of a schedule can happen in any state.
"""

from collections.abc import Container, Sequence
from typing import Any, TypeVar

from tests.app.payments.wallet.schedules.owed import Books, Payment
from tests.app.payments.wallet.wallets import Wallet

OUTCOMES = ("RESOLVED_BUYER_FAVOUR", "RESOLVED_SELLER_FAVOUR", "CANCELED_BY_BUYER", "ACCEPTED")
SHARES = ("whole", "half", "cent")
Found = TypeVar("Found")


class Happenings:
    """Lets things happen at the platform of one wallet."""

    def __init__(self, wallet: Wallet, plans: Sequence[str]) -> None:
        self._wallet = wallet
        self._plans = plans
        """Those to which a subscription can be revised."""
        self.suspended: set[str] = set()
        """The subscriptions that were suspended at some time."""

    async def refund(self, books: Books, which: int, share: str) -> None:
        """Refund a payment, or a part of it, on the platform's pages, unless it is under a dispute."""
        await self._take(books, "refund", which, share, besides=books.disputed(is_open=True))

    async def reverse(self, books: Books, which: int, share: str) -> None:
        """Take a payment back, or a part of it, as after a chargeback.

        What is taken of a disputed payment is for the dispute.
        """
        await self._take(books, "reverse", which, share, besides=books.disputed())

    async def dispute(self, books: Books, which: int, share: str, reverses: bool) -> None:
        if not books.open_disputes:
            await self._take(books, "dispute", which, share, reverses=reverses)

    async def _take(
        self, books: Books, action: str, which: int, share: str, besides: Container[str] = (), **more: Any
    ) -> None:
        """Take a share of what is left of a payment, the newest one first."""
        made = [paid for paid in reversed(books.payments.values()) if paid.id not in besides and left_of(paid)]
        payment = one_of(made, which)
        if payment is None:
            return
        amount = {"whole": left_of(payment), "half": (left_of(payment) + 1) // 2, "cent": 1}[share]
        value = f"{amount // 100}.{amount % 100:02}"
        await self._wallet.control(action, payment_id=payment.id, value=value, **more)

    async def resolve(self, books: Books, which: int, outcome: str) -> None:
        if dispute := one_of(books.open_disputes, which):
            await self._wallet.control("resolve_dispute", dispute_id=dispute, outcome=outcome)

    async def appeal(self, books: Books, which: int) -> None:
        """Open a decided dispute again."""
        if not books.open_disputes and (dispute := one_of(books.decided_disputes, which)):
            await self._wallet.control("resolve_dispute", dispute_id=dispute, outcome=None)

    async def settle_pending(self, books: Books, completed: bool = True) -> None:
        """Complete the pending captures of orders, and decide the pending payments of subscriptions."""
        for payment in books.pending:
            if payment["order_id"]:
                await self._wallet.control("settle", capture_id=payment["id"], state="completed")
            else:
                await self._wallet.control("settle_sale", sale_id=payment["id"], completed=completed)

    async def deliver(self, _: Books, fault: str) -> None:
        """Lose, repeat, delay or reorder the further events, or deliver them as usual."""
        await self._wallet.control("deliveries", **({"fault": fault, "delay_ms": 100} if fault else {}))

    async def change(self, books: Books, which: int, action: str) -> None:
        """Cancel, suspend or activate a subscription."""
        allowed = {"cancel": {"ACTIVE", "SUSPENDED"}, "suspend": {"ACTIVE"}, "activate": {"SUSPENDED"}}[action]
        found = [sub.id for sub in books.subscriptions.values() if sub.status in allowed]
        if sub_id := one_of(found, which):
            self.suspended |= {sub_id} if action == "suspend" else set()
            path = f"/v1/billing/subscriptions/{sub_id}/{action}"
            await self._wallet.platform("POST", path, {"reason": "enough"})

    async def revise(self, books: Books, which: int, plan: int) -> None:
        """Change the plan of a subscription, to which the payer consents."""
        active = [sub for sub in books.subscriptions.values() if sub.status == "ACTIVE"]
        if (sub := one_of(active, which)) is None:
            return
        others = [name for name in self._plans if name != sub.plan_id]
        body = {"plan_id": others[plan % len(others)]}
        revised = await self._wallet.platform("POST", f"/v1/billing/subscriptions/{sub.id}/revise", body)
        await self._wallet.approve(next(link["href"] for link in revised["links"] if link["rel"] == "approve"))

    async def decline(self, books: Books, which: int, times: int) -> None:
        """Let the bank decline the next payments of a subscription."""
        await self._next_payments(books, which, "decline", times=times)

    async def pend(self, books: Books, which: int, times: int = 1) -> None:
        """Let the next payments of a subscription be pending at first."""
        await self._next_payments(books, which, "pend", times=times)

    async def bill_late(self, books: Books, which: int, hours: int) -> None:
        """Take the further payments of a subscription late on their day."""
        await self._next_payments(books, which, "bill_late", hours=hours)

    async def _next_payments(self, books: Books, which: int, action: str, **how: int) -> None:
        active = [sub.id for sub in books.subscriptions.values() if sub.status == "ACTIVE"]
        if sub_id := one_of(active, which):
            await self._wallet.control(action, subscription_id=sub_id, **how)


def left_of(payment: Payment) -> int:
    return payment.amount - payment.taken - payment.by_hand - payment.by_call


def one_of(found: Sequence[Found], which: int) -> Found | None:
    return found[which % len(found)] if found else None
