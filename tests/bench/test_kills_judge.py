"""The judge of killed payments finds what is lost, doubled, or not paid."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from bench.kills.books import Books
from bench.kills.judge import Acts, judge

Lists = Mapping[str, list[dict[str, Any]]]

ROWS: Lists = {
    "entries": [
        {"uid": "u", "kind": "grant", "key": "card:pi_1", "channel": "client", "reverses": ""},
        {"uid": "u", "kind": "refund", "key": "refund:re_1", "channel": "webhook", "reverses": "card:pi_1"},
        {"uid": "u", "kind": "grant", "key": "card:in_1", "channel": "webhook", "reverses": ""},
        {"uid": "u", "kind": "grant", "key": "wallet:capture:C1", "channel": "webhook", "reverses": ""},
        {"uid": "u", "kind": "grant", "key": "wallet:sale:S1", "channel": "client", "reverses": ""},
        {"uid": "u", "kind": "grant", "key": "wallet:sale:S2", "channel": "client", "reverses": ""},
        {"uid": "u", "kind": "refund", "key": "refund:D1", "channel": "webhook", "reverses": "wallet:capture:C1"},
        {"uid": "u", "kind": "refund", "key": "refund:dp_1", "channel": "webhook", "reverses": "card:pi_5"},
        {"uid": "u", "kind": "restore", "key": "restore:dp_1", "channel": "webhook", "reverses": "card:pi_5"},
    ],
    "card_payments": [{"payment_id": "p1", "uid": "u", "intent_id": "pi_1", "status": "succeeded"}],
    "card_sales": [{"sale_id": "pi_1", "intent_id": "pi_1", "reversed_by": "re_1"}],
    "card_subscriptions": [{"row_id": "r1", "uid": "u", "subscription_id": "sub_1", "status": "active"}],
    "orders": [{"row_id": "o1", "uid": "u", "order_id": "O1", "status": "COMPLETED"}],
    "subscriptions": [
        {"row_id": "s1", "uid": "u", "subscription_id": "I-1", "status": "CANCELLED", "superseded_at": "now"},
        {"row_id": "s2", "uid": "u", "subscription_id": "I-2", "status": "ACTIVE", "superseded_at": None},
    ],
    "upgrades": [{"upgrade_id": "g1", "old_row": "s1", "new_row": "s2", "state": "done"}],
    "wallet_refunds": [{"sale_id": "S1", "amount": 400, "state": "done"}],
    "payment_reversals": [],
    "withdrawals": [{"withdrawal_id": "w1", "uid": "u", "status": "SUCCESS", "payout_id": "P1"}],
    "withdrawal_entries": [{"withdrawal_id": "w1", "kind": "reserve"}, {"withdrawal_id": "w1", "kind": "pay"}],
    "members": [{"code": "ABC", "uid": "friend", "quota": 1}],
    "webhooks": [],
    "jobs": [],
    "mismatches": [],
}
PLATFORMS: Lists = {
    "intents": [
        {"id": "pi_1", "status": "succeeded", "metadata": {"payment_id": "p1"}},
        {"id": "pi_2", "status": "succeeded", "metadata": {}},
    ],
    "invoices": [{"id": "in_1", "status": "paid"}],
    "card_subscriptions": [{"id": "sub_1", "metadata": {"subscription_row_id": "r1"}}],
    "payments": [
        {"id": "C1", "order_id": "O1", "subscription_id": "", "status": "COMPLETED"},
        {"id": "S1", "order_id": "", "subscription_id": "I-1", "status": "PARTIALLY_REFUNDED"},
        {"id": "S2", "order_id": "", "subscription_id": "I-2", "status": "COMPLETED"},
    ],
    "refunds": [{"id": "R1", "payment_id": "S1", "amount": 400, "status": "COMPLETED"}],
    "disputes": [{"id": "D1", "payment_id": "C1", "outcome": None}],
    "payouts": [{"id": "P1", "sender_batch_id": "w1", "status": "SUCCESS"}],
    "subscriptions": [{"id": "I-1", "status": "CANCELLED"}, {"id": "I-2", "status": "ACTIVE"}],
}
ACTS = Counter({
    ("u", "card: charge"): 1, ("u", "card: subscribe"): 1, ("u", "wallet: create"): 1,
    ("u", "wallet: subscribe"): 1, ("u", "wallet: upgrade"): 1, ("u", "withdraw"): 1,
})  # fmt: skip


def misses(rows: Lists, platforms: Lists) -> list[str]:
    books = Books(rows={**ROWS, **rows}, **{**PLATFORMS, **platforms})
    verdicts = judge(books, Acts(ACTS, ACTS, [("ABC", "friend")], ["pi_1"], {"pi_5": "won"}))
    assert all(verdict.seen for verdict in verdicts)
    return [verdict.what for verdict in verdicts if verdict.misses]


def test_books_that_agree_have_no_miss() -> None:
    assert misses({}, {}) == []


REQUEST = "each request makes at most one order, however often it is repeated, and none is lost"
CARD = "each payment with a card has one order and one grant"
CARD_SUBSCRIPTION = "each subscription with a card has one order, and a grant for each invoice"
CAPTURE = "each capture has one order and one grant"
SALE = "each payment of a subscription by wallet has one order and one grant"
GRANT = "each grant has a payment"
UPGRADE = "each paid upgrade is complete: the old subscription is cancelled at the platform"
REFUND = "what is unused of a replaced subscription is refunded once"
WITHDRAWAL = "each withdrawal has one payout and the right entries"
REVERSAL = "each refund of a payment with a card takes its grant back"
DISPUTE = "a grant is taken back while its payment is disputed and after a lost dispute, and no longer"
MEMBER = "each user who has joined a share group is a member, and no group is too large"


@pytest.mark.parametrize(
    ("table", "number", "what"),
    [
        ("entries", 0, [CARD]),
        ("entries", 1, [REVERSAL]),
        ("entries", 2, [CARD_SUBSCRIPTION]),
        ("entries", 3, [CAPTURE]),
        ("entries", 5, [SALE]),
        ("entries", 6, [DISPUTE]),
        ("entries", 8, [DISPUTE]),
        ("card_payments", 0, [CARD]),
        ("card_sales", 0, [REVERSAL]),
        ("card_subscriptions", 0, [CARD_SUBSCRIPTION]),
        ("orders", 0, [CAPTURE]),
        ("wallet_refunds", 0, [REFUND]),
        ("withdrawals", 0, [WITHDRAWAL]),
        ("withdrawal_entries", 1, [WITHDRAWAL]),
        ("members", 0, [MEMBER]),
    ],
)
def test_a_lost_row_is_found(table: str, number: int, what: list[str]) -> None:
    left = [row for index, row in enumerate(ROWS[table]) if index != number]
    found = misses({table: left or [{**ROWS[table][0], **_other(table)}]}, {})
    assert set(what) <= set(found)


def _other(table: str) -> dict[str, str]:
    """The fields of a row of another payment, because a check of nothing is a miss too."""
    names = {"card_payments": "intent_id", "card_sales": "intent_id", "card_subscriptions": "subscription_id"}
    names |= {"orders": "order_id", "wallet_refunds": "sale_id", "withdrawals": "withdrawal_id", "members": "uid"}
    return {names[table]: "another"}


@pytest.mark.parametrize(
    ("of", "more", "what"),
    [
        ("intents", {"id": "pi_3", "status": "succeeded", "metadata": {"payment_id": "p1"}}, CARD),
        ("intents", {"id": "pi_4", "status": "succeeded", "metadata": {}}, CARD_SUBSCRIPTION),
        ("card_subscriptions", {"id": "sub_2", "metadata": {"subscription_row_id": "r1"}}, CARD_SUBSCRIPTION),
        ("payments", {"id": "C2", "order_id": "O1", "subscription_id": "", "status": "COMPLETED"}, CAPTURE),
        ("payments", {"id": "S3", "order_id": "", "subscription_id": "I-2", "status": "COMPLETED"}, SALE),
        ("refunds", {"id": "R2", "payment_id": "S1", "amount": 400, "status": "COMPLETED"}, REFUND),
        ("refunds", {"id": "R2", "payment_id": "S2", "amount": 400, "status": "COMPLETED"}, REFUND),
        ("payouts", {"id": "P2", "sender_batch_id": "w1", "status": "SUCCESS"}, WITHDRAWAL),
        ("payouts", {"id": "P2", "sender_batch_id": "w2", "status": "SUCCESS"}, WITHDRAWAL),
    ],
)
def test_what_a_platform_has_done_twice_is_found(of: str, more: dict[str, Any], what: str) -> None:
    assert what in misses({}, {of: [*PLATFORMS[of], more]})


@pytest.mark.parametrize("table", ["card_payments", "card_subscriptions", "orders", "subscriptions", "withdrawals"])
def test_a_second_order_of_a_request_is_found(table: str) -> None:
    assert REQUEST in misses({table: [*ROWS[table], ROWS[table][0]]}, {})


def test_a_grant_without_a_payment_is_found() -> None:
    entry = {"uid": "u", "kind": "grant", "key": "card:pi_9", "channel": "client", "reverses": ""}
    assert misses({"entries": [*ROWS["entries"], entry]}, {}) == [GRANT]


@pytest.mark.parametrize(
    ("rows", "platforms"),
    [
        ({"upgrades": [{**ROWS["upgrades"][0], "state": "new_active"}]}, {}),
        ({}, {"subscriptions": [{"id": "I-1", "status": "ACTIVE"}, {"id": "I-2", "status": "ACTIVE"}]}),
    ],
)
def test_an_upgrade_that_is_not_complete_is_found(rows: Lists, platforms: Lists) -> None:
    assert misses(rows, platforms) == [UPGRADE]


def test_a_grant_that_stays_taken_after_a_won_dispute_is_found() -> None:
    dispute = {**PLATFORMS["disputes"][0], "outcome": "RESOLVED_SELLER_FAVOUR"}
    assert misses({}, {"disputes": [dispute]}) == [DISPUTE]


def test_a_group_that_is_too_large_is_found() -> None:
    assert misses({"members": [*ROWS["members"], {"code": "ABC", "uid": "other", "quota": 1}]}, {}) == [MEMBER]
