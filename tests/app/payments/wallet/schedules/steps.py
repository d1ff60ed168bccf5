"""The steps of random schedules, and the instants at which they begin."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from tests.app.payments.wallet.schedules.happenings import OUTCOMES, SHARES
from tests.app.payments.wallet.schedules.jobs import PASSING

STARTS = (
    datetime(2027, 1, 31, 12, tzinfo=UTC),
    datetime(2028, 1, 30, 23, 30, tzinfo=UTC),
    datetime(2027, 5, 31, 9, 59, tzinfo=UTC),
    datetime(2028, 2, 29, 0, 30, tzinfo=UTC),
    datetime(2027, 3, 15, 12, tzinfo=UTC),
)
"""Days that some months lack, hours before and after that of payments, and a usual day."""
PRODUCTS = ("month", "plus", "gold", "year")
_WHICH = st.integers(0, 2)
_DELIVERIES = st.sampled_from(["", "lost", "duplicate", "delayed", "reordered"])
_SHARE = st.sampled_from(SHARES)
_REQUESTS = ("order_again", "capture", "sync_order", "sync_sub")
_JOBS = ("work", "reconcile", "find_missed", "end_replaced")
_KILLED = (*_REQUESTS, "create_order", "create_sub", "begin_upgrade", "reconcile", "end_replaced")


def _step(name: str, *arguments: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.tuples(st.just(name), *arguments)


_CLIENT = (
    _step("buy", st.sampled_from(["", "lost", "duplicate", "decline", "pending"])),
    _step("subscribe", st.sampled_from(PRODUCTS), _DELIVERIES),
    _step("capture", _WHICH),
    _step("capture_without_answer", _WHICH),
    _step("sync_order", _WHICH),
    _step("sync_sub", _WHICH),
    _step("create_sub", st.sampled_from(PRODUCTS)),
    _step("approve_old", _WHICH),
    _step("upgrade", st.sampled_from(PRODUCTS), _DELIVERIES),
    _step("begin_upgrade", st.sampled_from(PRODUCTS), _WHICH),
    _step("approve_upgrades"),
    _step("use_coins"),
    _step("use_units", st.integers(1, 4)),
)
_PLATFORM = (
    _step("refund", _WHICH, _SHARE),
    _step("reverse", _WHICH, _SHARE),
    _step("dispute", _WHICH, _SHARE, st.booleans()),
    _step("resolve", _WHICH, st.sampled_from(OUTCOMES)),
    _step("appeal", _WHICH),
    _step("change", _WHICH, st.sampled_from(["cancel", "suspend", "activate"])),
    _step("revise", _WHICH, _WHICH),
    _step("decline", _WHICH, st.integers(1, 3)),
    _step("pend", _WHICH),
    _step("bill_late", _WHICH, st.integers(0, 14)),
    _step("settle_pending", st.booleans()),
    _step("deliver", _DELIVERIES),
)
_SERVER = (
    *(_step(name) for name in _JOBS),
    _step("fail_for_a_while", _WHICH),
    _step("race", st.lists(st.sampled_from([*_REQUESTS, *_JOBS]), min_size=2, max_size=3)),
    _step("kill", st.sampled_from(_KILLED)),
)
_TIME = _step("pass_time", st.sampled_from(PASSING))
STEPS = st.one_of(st.one_of(_CLIENT), st.one_of(_PLATFORM), st.one_of(_SERVER), _TIME)
EXAMPLES = st.tuples(st.sampled_from(STARTS), st.sampled_from(PRODUCTS), _DELIVERIES)
"""When a schedule begins, and the product to which the user subscribes first."""
