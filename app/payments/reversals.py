"""Takes grants back when platforms take payments back, and restores them (§2.7).

What is due follows from the stored refunds, reversals and disputes of a payment. What was taken back follows from
the ledger. The difference is posted, so it does not matter in which order they were reported, or how often.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from app.payments.posting import Posting
from storage.assets import entries as asset_entries
from storage.assets.entries import Entry
from storage.payments import reversal_lists
from storage.payments import reversals as stored_reversals
from storage.payments.reversals import Reversal
from streams.wire.money import Money


@dataclass(frozen=True, slots=True)
class Lost:
    """The part of a payment that is lost to the merchant."""

    paid: int
    amount: int
    """What counts of it, in minor units of `paid`: all of it, or else what reversals and disputes have taken."""
    is_whole: bool
    last: Reversal | None
    """The newest event among those that have taken it."""
    undone: Reversal | None
    """The newest event among those that were undone."""
    gone: int
    """What is not with the merchant, or may be taken yet: also what the merchant has refunded of it."""

    def units_of(self, granted: Entry) -> int:
        """Return how many units of a grant are to be taken back, with halves rounded up.

        Part of a payment takes nothing of a subscription.
        """
        units = _units_of(granted)
        if self.is_whole:
            return units
        if granted.type == "subscription":
            return 0
        return (2 * units * self.amount + self.paid) // (2 * self.paid)


def lost_of(paid: Money, reversals: Sequence[Reversal]) -> Lost:
    """Return what is lost of a payment.

    Refunds by the merchant count only once nothing of the payment is left. Of a dispute that is open or lost, what
    no reversal stands for counts too. The reversals of a dispute that was won do not count.
    """
    refunds = sum(_amount_of(each, paid) for each in reversals if each.kind == "refund" and each.state == "taken")
    taken = sum(_amount_of(each, paid) for each in reversals if each.kind == "reversal" and each.state == "taken")
    for dispute, paired in _paired(paid, reversals):
        amounts = {each.reversal_id: _amount_of(each, paid) for each in paired if each.state == "taken"}
        if dispute.state == "undone":
            taken -= sum(amounts.values())
        elif dispute.state in {"open", "taken"}:
            taken += _amount_of(dispute, paid) - sum(amounts.values())
            by_refund = sum(amounts[each.reversal_id] for each in paired if each.kind == "refund")
            refunds, taken = refunds - by_refund, taken + by_refund
    is_whole = refunds + taken >= paid.amount
    counted = [
        each for each in reversals if each.state in {"open", "taken"} and (is_whole or each.kind != "refund")
    ]
    undone = [each for each in reversals if each.state in {"undone", "closed"}]
    return Lost(
        paid.amount, paid.amount if is_whole else taken, is_whole, _newest(counted), _newest(undone),
        min(paid.amount, refunds + taken),
    )  # fmt: skip


def _paired(paid: Money, reversals: Sequence[Reversal]) -> list[tuple[Reversal, list[Reversal]]]:
    """Return each dispute with what stands for it, which no platform says.

    These are reversals that began while it was open, of at most its amount together, the greatest first, and each
    with one dispute only, the newest first. The reversal of a lost dispute may begin after the decision, and may
    have been read as a refund.
    """
    free = sorted(
        (each for each in reversals if each.kind != "dispute"),
        key=lambda each: (each.kind == "refund", -_amount_of(each, paid), each.happened_at, each.reversal_id),
    )
    disputes = [each for each in reversals if each.kind == "dispute"]
    pairs = []
    for dispute in sorted(disputes, key=lambda each: (each.happened_at, each.reversal_id), reverse=True):
        left, paired = _amount_of(dispute, paid), []
        for each in _undone_first(free) if dispute.state == "undone" else free:
            if _may_stand_for(dispute, each) and 0 < _amount_of(each, paid) <= left:
                paired.append(each)
                left -= _amount_of(each, paid)
        free = [each for each in free if each not in paired]
        pairs.append((dispute, paired))
    return pairs


def _undone_first(free: Sequence[Reversal]) -> list[Reversal]:
    return sorted(free, key=lambda each: each.state != "undone")


def _may_stand_for(dispute: Reversal, each: Reversal) -> bool:
    began_at = each.happened_at.replace(microsecond=0)  # As the platform writes it.
    if began_at < dispute.happened_at.replace(microsecond=0):
        return False
    if dispute.state in {"open", "taken"}:
        return each.state == "taken" and (each.kind == "reversal" or dispute.state == "taken")
    return each.kind == "reversal" and began_at <= dispute.changed_at


def _newest(reversals: Sequence[Reversal]) -> Reversal | None:
    return max(reversals, key=lambda each: (each.happened_at, each.reversal_id), default=None)


def _amount_of(reversal: Reversal, paid: Money) -> int:
    """Return the amount of a reversal. One in another currency counts as all of the payment."""
    is_known = reversal.amount is not None and reversal.currency == paid.currency
    return reversal.amount if is_known and reversal.amount is not None else paid.amount


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment at a platform, and what was read of its reversals."""

    platform: str
    payment_id: str
    money: Money
    reported: Sequence[Reversal] = ()
    """The reversals that were read. Those of other payments are left out."""
    is_refunded: bool = False
    """Whether the platform says that nothing is left of it, even if it does not say by what."""
    refunded_at: datetime | None = None
    """When it became so, if that is known."""
    order_id: str = ""
    """The platform's id of the order or of the subscription."""


@dataclass(frozen=True, slots=True)
class Change:
    """Units of a grant were taken back or restored, or the payment has granted nothing."""

    kind: Literal["refund", "restored"]
    money: Money
    """The part of the payment that was lost or won back."""
    by: str
    """The refund or dispute that has caused it."""


async def store_reversals(posting: Posting, payment: Payment) -> tuple[Lost, Lost]:
    """Store what was read of the reversals of a payment. Return what was lost of it before, and after."""
    conn, app_id, platform, payment_id = posting.conn, posting.app_id, payment.platform, payment.payment_id
    stored = await stored_reversals.of_payments(conn, app_id, platform=platform, payment_ids=[payment_id])
    before = lost_of(payment.money, stored)
    reported = [reversal for reversal in payment.reported if reversal.payment_id == payment_id]
    if not (stored or reported or payment.is_refunded):
        return before, before
    for reversal in reported:
        await _put(posting, payment, reversal)
    stored = await stored_reversals.of_payments(conn, app_id, platform=platform, payment_ids=[payment_id])
    if await _store_unnamed(posting, payment, stored):
        stored = await stored_reversals.of_payments(conn, app_id, platform=platform, payment_ids=[payment_id])
    return before, lost_of(payment.money, stored)


async def _put(posting: Posting, payment: Payment, reversal: Reversal) -> None:
    conn, app_id, platform = posting.conn, posting.app_id, payment.platform
    await stored_reversals.put(conn, app_id, platform=platform, reversal=reversal)
    await reversal_lists.put_details(
        conn, app_id, posting.uid, platform=platform, order_id=payment.order_id, reversal=reversal
    )


async def _store_unnamed(posting: Posting, payment: Payment, stored: Sequence[Reversal]) -> bool:
    """Store a refund of what the platform says is refunded without saying by what. Return whether that changes.

    If the payment is no longer refunded, this counts only after a won dispute: otherwise the data may be older.
    """
    payment_id, paid = payment.payment_id, payment.money
    unnamed = next((each for each in stored if each.reversal_id == payment_id), None)
    named = [each for each in stored if each is not unnamed and each.kind != "dispute" and each.state == "taken"]
    rest = max(0, paid.amount - sum(_amount_of(each, paid) for each in named))
    known = 0 if unnamed is None else _amount_of(unnamed, paid)
    if payment.is_refunded:
        wanted = rest
    elif any(each.kind == "dispute" and each.state == "undone" for each in stored):
        wanted = 0
    else:
        wanted = min(known, rest)
    if wanted == known:
        return False
    target = {"platform": payment.platform, "payment_id": payment_id}
    await stored_reversals.remove_unnamed(posting.conn, posting.app_id, **target)
    if wanted:
        at = payment.refunded_at or posting.now if unnamed is None else unnamed.happened_at
        refund = Reversal(payment_id, payment_id, "refund", wanted, paid.currency, "taken", at, 0)
        await _put(posting, payment, refund)
    return True


async def apply_reversals(
    posting: Posting, payment: Payment, granted: Entry | None, *, name: str = ""
) -> Change | None:
    """Store what was read of the reversals of a payment, and take back or restore units of its grant.

    `granted` is `None` if it has granted nothing. `name` is the id in the keys of entries. If it is empty, it is
    that of the last reversal. Return what has changed. The user is locked.
    """
    before, after = await store_reversals(posting, payment)
    if after.last is None and after.undone is None:
        return None
    if granted is None:
        return _change(payment, before, after) if before.is_whole is not after.is_whole else None
    posted = await asset_entries.reversing(posting.conn, posting.app_id, grant=granted.key)
    taken = sum(_units_of(entry) if entry.kind == "refund" else -_units_of(entry) for entry in posted)
    units = after.units_of(granted) - taken
    if units == 0:
        return None
    if units > 0:
        cause = after.last
        name = name or (payment.payment_id if cause is None else cause.reversal_id)
        entry = replace(
            granted, key=_free(f"refund:{name}", posted), kind="refund",
            happened_at=None if cause is None else cause.happened_at,
        )  # fmt: skip
    else:
        refund = next(entry for entry in reversed(posted) if entry.kind == "refund")
        key = _free(refund.key.replace("refund:", "restore:", 1), posted)
        entry = replace(granted, key=key, kind="restore", origin="restore")
    quantity = abs(units) if granted.type == "consumable" else granted.quantity
    entry = replace(entry, quantity=quantity, channel=posting.channel, reverses=granted.key)
    if not await posting.post(entry):
        return None
    if before.amount != after.amount and (units > 0) is (before.amount < after.amount):
        return _change(payment, before, after)
    money = payment.money.part(abs(units), _units_of(granted))
    return _changed(payment, after, money=money, is_refund=units > 0)


def _change(payment: Payment, before: Lost, after: Lost) -> Change:
    amount = after.amount - before.amount
    return _changed(payment, after, money=Money(abs(amount), payment.money.currency), is_refund=amount > 0)


def _changed(payment: Payment, after: Lost, *, money: Money, is_refund: bool) -> Change:
    cause = after.last if is_refund else after.undone
    by = payment.payment_id if cause is None else cause.reversal_id
    return Change("refund" if is_refund else "restored", money, by)


def _units_of(entry: Entry) -> int:
    return entry.quantity if entry.type == "consumable" else 1


def _free(key: str, posted: Iterable[Entry]) -> str:
    """Return a key that is not posted. A dispute that is opened again, for example, takes back again."""
    keys, number = {entry.key for entry in posted}, 1
    while (key if number == 1 else f"{key}:{number}") in keys:
        number += 1
    return key if number == 1 else f"{key}:{number}"
