"""Judge the books at the end: nothing that was paid is lost, and nothing is doubled. This module does no I/O."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bench.kills.books import Books, Row

_PAID = frozenset({"COMPLETED", "PARTIALLY_REFUNDED", "REFUNDED"})
_ENDS = {"SUCCESS": ["reserve", "pay"], "FAILED": ["reserve", "void"]}
_PAYMENT_ID, _ROW_ID = "payment_id", "subscription_row_id"


@dataclass(frozen=True, slots=True)
class Verdict:
    what: str
    seen: int
    misses: Sequence[str] = ()


@dataclass(slots=True)
class _Check:
    what: str
    seen: int = 0
    misses: list[str] = field(default_factory=list)

    def is_one(self, count: int, what: str) -> None:
        self.holds(count == 1, f"{what}: {count}")

    def holds(self, condition: bool, what: str) -> None:  # noqa: FBT001 - the condition is what is checked
        self.seen += 1
        if not condition:
            self.misses.append(what)

    @property
    def verdict(self) -> Verdict:
        return Verdict(self.what, self.seen, self.misses)


@dataclass(frozen=True, slots=True)
class Acts:
    """The actions of users. Requests are counted by user and name, without their repeats."""

    begun: Counter[tuple[str, str]]
    answered: Counter[tuple[str, str]]
    joined: Sequence[tuple[str, str]]
    """The acknowledged members of share groups: the code, and the user."""
    refunded: Sequence[str]
    """The payments with a card that were refunded at the platform."""
    disputed: Mapping[str, str]
    """The payments with a card that were disputed, and the last status of the dispute."""


_ORDERS: Mapping[str, Sequence[str]] = {
    "card_payments": ("card: create", "card: charge"),
    "card_subscriptions": ("card: subscribe",),
    "orders": ("wallet: create",),
    "subscriptions": ("wallet: subscribe", "wallet: upgrade"),
    "withdrawals": ("withdraw",),
}
"""The requests that make the rows of each table, one each."""


def judge(books: Books, acts: Acts) -> list[Verdict]:
    """Return the verdicts."""
    entries = Counter((entry["kind"], entry["key"]) for entry in books.rows["entries"])
    checks: Sequence[Callable[[Books, Counter[tuple[str, str]]], Verdict]] = (
        _card_payments,
        _card_subscriptions,
        _orders,
        _sales,
        _grants,
        _upgrades,
        _refunds,
        _withdrawals,
    )
    verdicts = [check(books, entries) for check in checks]
    return [
        _requests(books, acts),
        *verdicts,
        _reversals(books, entries, acts.refunded),
        _disputes(books, acts.disputed),
        _members(books, acts.joined),
    ]


def _by(rows: Iterable[Row], field: str) -> Mapping[str, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[row[field]].append(row)
    return found


def _requests(books: Books, acts: Acts) -> Verdict:
    """Count orders. A killed process may leave an order without an answer if the client gives the request up."""
    check = _Check("each request makes at most one order, however often it is repeated, and none is lost")
    users = {uid for uid, _ in acts.begun if uid}
    for table, names in _ORDERS.items():
        made = Counter(row["uid"] for row in books.rows[table])
        for uid in users:
            begun, answered = (sum(counts[uid, name] for name in names) for counts in (acts.begun, acts.answered))
            check.holds(answered <= made[uid] <= begun, f"{table} of {uid}: {answered} <= {made[uid]} <= {begun}")
    return check.verdict


def _card_payments(books: Books, entries: Counter[tuple[str, str]]) -> Verdict:
    check = _Check("each payment with a card has one order and one grant")
    rows = _by(books.rows["card_payments"], "intent_id")
    ours = [intent for intent in books.intents if _PAYMENT_ID in intent["metadata"]]
    for intent in ours:
        found = rows.get(intent["id"], [])
        check.is_one(len(found), f"orders of {intent['id']} ({intent['status']})")
        if intent["status"] == "succeeded":
            check.holds([row["status"] for row in found] == ["succeeded"], f"order of {intent['id']} is not paid")
            check.is_one(entries["grant", f"card:{intent['id']}"], f"grants of {intent['id']}")
    for payment_id, intents in Counter(intent["metadata"][_PAYMENT_ID] for intent in ours).items():
        check.is_one(intents, f"payments of the order {payment_id}")
    return check.verdict


def _card_subscriptions(books: Books, entries: Counter[tuple[str, str]]) -> Verdict:
    check = _Check("each subscription with a card has one order, and a grant for each invoice")
    rows = _by(books.rows["card_subscriptions"], "subscription_id")
    for subscription in books.card_subscriptions:
        check.is_one(len(rows.get(subscription["id"], [])), f"orders of {subscription['id']}")
    for row_id, count in Counter(
        subscription["metadata"][_ROW_ID] for subscription in books.card_subscriptions
    ).items():
        check.is_one(count, f"subscriptions of the order {row_id}")
    paid = [invoice["id"] for invoice in books.invoices if invoice["status"] == "paid"]
    for invoice in paid:
        check.is_one(entries["grant", f"card:{invoice}"], f"grants of {invoice}")
    charges = [
        intent
        for intent in books.intents
        if _PAYMENT_ID not in intent["metadata"] and intent["status"] == "succeeded"
    ]
    check.holds(len(charges) == len(paid), f"{len(charges)} charges for {len(paid)} invoices")
    return check.verdict


def _orders(books: Books, entries: Counter[tuple[str, str]]) -> Verdict:
    check = _Check("each capture has one order and one grant")
    rows = _by(books.rows["orders"], "order_id")
    captures = [payment for payment in books.payments if payment["order_id"]]
    for capture in captures:
        found = rows.get(capture["order_id"], [])
        check.is_one(len(found), f"orders of {capture['id']}")
        if capture["status"] in _PAID:
            check.holds([row["status"] for row in found] == ["COMPLETED"], f"order of {capture['id']} is not paid")
            check.is_one(entries["grant", f"wallet:capture:{capture['id']}"], f"grants of {capture['id']}")
    for order_id, count in Counter(capture["order_id"] for capture in captures).items():
        check.is_one(count, f"captures of {order_id}")
    return check.verdict


def _sales(books: Books, entries: Counter[tuple[str, str]]) -> Verdict:
    """A payment of a subscription that had been replaced when it was paid grants nothing, and is refunded."""
    check = _Check("each payment of a subscription by wallet has one order and one grant")
    rows = _by(books.rows["subscriptions"], "subscription_id")
    for sale in (payment for payment in books.payments if payment["subscription_id"]):
        found = rows.get(sale["subscription_id"], [])
        check.is_one(len(found), f"orders of {sale['id']}")
        count = entries["grant", f"wallet:sale:{sale['id']}"]
        is_returned = sale["status"] == "REFUNDED" and any(row["superseded_at"] for row in found)
        check.holds(count == 1 or (count == 0 and is_returned), f"grants of {sale['id']}: {count}")
    return check.verdict


def _grants(books: Books, _: Counter[tuple[str, str]]) -> Verdict:
    check = _Check("each grant has a payment")
    paid = {
        f"card:{payment['id']}"
        for payment in (*books.intents, *books.invoices)
        if payment["status"] in {"succeeded", "paid"}
    }
    for payment in books.payments:
        kind = "capture" if payment["order_id"] else "sale"
        paid |= {f"wallet:{kind}:{payment['id']}"} if payment["status"] in _PAID else set()
    for entry in books.rows["entries"]:
        if entry["kind"] == "grant":
            check.holds(entry["key"] in paid, f"{entry['key']} is not paid")
    return check.verdict


def _upgrades(books: Books, _: Counter[tuple[str, str]]) -> Verdict:
    check = _Check("each paid upgrade is complete: the old subscription is cancelled at the platform")
    rows = {row["row_id"]: row for row in books.rows["subscriptions"]}
    states = {subscription["id"]: subscription["status"] for subscription in books.subscriptions}
    paid = {payment["subscription_id"] for payment in books.payments if payment["status"] in _PAID}
    for upgrade in books.rows["upgrades"]:
        if rows[upgrade["new_row"]]["subscription_id"] in paid:
            check.holds(upgrade["state"] == "done", f"upgrade {upgrade['upgrade_id']} is {upgrade['state']}")
            old = rows[upgrade["old_row"]]["subscription_id"]
            check.holds(states[old] == "CANCELLED", f"the replaced {old} is {states[old]}")
    return check.verdict


def _refunds(books: Books, _: Counter[tuple[str, str]]) -> Verdict:
    check = _Check("what is unused of a replaced subscription is refunded once")
    made = _by((refund for refund in books.refunds if refund["status"] == "COMPLETED"), "payment_id")
    for refund in books.rows["wallet_refunds"]:
        amounts = [made_refund["amount"] for made_refund in made.get(refund["sale_id"], [])]
        is_right = refund["state"] == "done" and amounts == [refund["amount"]]
        check.holds(is_right, f"refund of {refund['sale_id']} is {refund['state']}: {amounts}")
    known = {row["sale_id"] for row in books.rows["wallet_refunds"]}
    known |= {row["payment_id"] for row in books.rows["payment_reversals"]}
    for payment_id in made:
        check.holds(payment_id in known, f"the refund of {payment_id} is not known")
    return check.verdict


def _withdrawals(books: Books, _: Counter[tuple[str, str]]) -> Verdict:
    check = _Check("each withdrawal has one payout and the right entries")
    payouts = _by(books.payouts, "sender_batch_id")
    kinds = _by(books.rows["withdrawal_entries"], "withdrawal_id")
    for row in books.rows["withdrawals"]:
        name = row["withdrawal_id"]
        check.holds(row["status"] == "SUCCESS", f"withdrawal {name} is {row['status']}")
        check.is_one(len(payouts.get(name, [])), f"payouts of {name}")
        found = [entry["kind"] for entry in kinds.get(name, [])]
        check.holds(found == _ENDS.get(row["status"], ["reserve"]), f"entries of {name}: {found}")
    known = {row["withdrawal_id"] for row in books.rows["withdrawals"]}
    for name in payouts:
        check.holds(name in known, f"the payout of {name} has no withdrawal")
    return check.verdict


def _reversals(books: Books, entries: Counter[tuple[str, str]], refunded: Iterable[str]) -> Verdict:
    check = _Check("each refund of a payment with a card takes its grant back")
    sales = {row["intent_id"]: row for row in books.rows["card_sales"]}
    for intent in refunded:
        by = sales[intent]["reversed_by"] if intent in sales else None
        check.is_one(entries["refund", f"refund:{by}"], f"refunds of {intent}")
    return check.verdict


def _disputes(books: Books, disputed: Mapping[str, str]) -> Verdict:
    check = _Check("a grant is taken back while its payment is disputed and after a lost dispute, and no longer")
    signs = {"refund": 1, "restore": -1}
    taken: Counter[str] = Counter()
    for entry in books.rows["entries"]:
        taken[entry["reverses"]] += signs.get(entry["kind"], 0)
    wanted = {f"card:{intent}": status != "won" for intent, status in disputed.items()}
    wanted |= {
        f"wallet:capture:{dispute['payment_id']}": dispute["outcome"] != "RESOLVED_SELLER_FAVOUR"
        for dispute in books.disputes
    }
    for grant, is_taken in wanted.items():
        check.holds(taken[grant] == is_taken, f"{grant} is taken back {taken[grant]} times, not {int(is_taken)}")
    return check.verdict


def _members(books: Books, joined: Iterable[tuple[str, str]]) -> Verdict:
    check = _Check("each user who has joined a share group is a member, and no group is too large")
    members = Counter((row["code"], row["uid"]) for row in books.rows["members"])
    for code, uid in set(joined):
        check.is_one(members[code, uid], f"membership of {uid}")
    for code, rows in _by(books.rows["members"], "code").items():
        check.holds(len(rows) <= rows[0]["quota"], f"group {code} has {len(rows)} members")
    return check.verdict
