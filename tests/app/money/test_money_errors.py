"""Each endpoint of money answers with each error that its row of the route table lists."""

import pytest

from app.http.errors import status_of
from app.http.paths import is_server_path
from app.http.row_errors import errors_of
from streams.wire.errors import RateLimited, ServiceError
from tests.app.money.area_error_causes import cause_of
from tests.app.money.error_causes import ELSEWHERE, IMPOSSIBLE, ROWS, Case
from tests.app.money.good_requests import CODE, GOOD, JOIN, METHOD, SUB, WITHDRAW
from tests.app.money.till import Place, Till

PLACES = sorted(ROWS)
_PLATFORM = "invalid_parameter, config_invalid, backend unavailable"
_CODES = "item_not_found, config_invalid, share_group_limit"
_PAYOUTS = "withdraw.account_invalid, withdraw.limit_exceeded, withdraw.user_restricted"
INTERFACE = {
    **{place: _PLATFORM for place in PLACES if "cardpay" in place[1] or "walletpay" in place[1]},
    ("POST", METHOD): "invalid_parameter, backend unavailable",
    ("POST", f"{SUB}/{{sub_id}}/upgrade"): f"{_PLATFORM}, subscription_unsupported_upgrade, invalid_operation",
    ("POST", CODE): f"{_CODES}, asset_request_not_supported",
    ("POST", JOIN): f"{_CODES}, invalid_parameter",
    ("POST", WITHDRAW): f"invalid_parameter, {_PAYOUTS}",
    ("GET", WITHDRAW): "invalid_parameter",
}
"""The types of errors that the interface lists (§4.9-§4.13)."""


def errors_at(place: Place) -> list[type[ServiceError]]:
    """The errors that the route table lists for a path, without those that only other tests cause."""
    row, (_, path) = ROWS[place], place
    is_limited = row.limit is not None or is_server_path(path) or path == JOIN
    return [
        error
        for error in dict.fromkeys(errors_of(row, path))
        # Otherwise the only limit is that of large responses, which are not read.
        if error not in ELSEWHERE and (place, error) not in IMPOSSIBLE and (is_limited or error is not RateLimited)
    ]


def test_each_error_of_each_row_has_a_cause() -> None:
    missing = [(place, error) for place in PLACES for error in errors_at(place) if cause_of(error) is None]
    assert missing == []
    assert GOOD.keys() == set(PLACES)


@pytest.mark.parametrize("place", INTERFACE, ids=" ".join)
def test_the_route_table_lists_what_the_interface_does(place: Place) -> None:
    listed = {error.error_type for error in errors_of(ROWS[place], place[1])}
    assert set(INTERFACE[place].split(", ")) - listed == set()


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
async def test_each_listed_error_is_answered(till: Till, place: Place) -> None:
    case, wrong = Case(till, place, await GOOD[place](till)), []
    for error in errors_at(place):
        cause = cause_of(error)
        assert cause is not None
        status, answer = await cause(case)
        found = (status, answer["error"]["error_type"] if answer and "error" in answer else None)
        if found != (status_of(error, case.row.area.statuses), error.error_type):
            wrong.append(f"{error.__name__}: {found} {answer}"[:200])
    status, answer = await till.ask(await GOOD[place](till))
    assert wrong == []
    assert status == 200, answer
