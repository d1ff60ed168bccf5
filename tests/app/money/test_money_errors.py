"""Each endpoint of money answers with each error that its row of the route table lists."""

import pytest

from app.http.rows.row_errors import errors_of
from tests.app.http.rows.listed_errors import wrong_answers
from tests.app.money.area_error_causes import TABLE
from tests.app.money.error_causes import Case
from tests.app.money.good_requests import CODE, GOOD, JOIN, METHOD, SUB, WITHDRAW
from tests.app.money.till import Place, Till

_PLATFORM = "invalid_parameter, config_invalid, backend unavailable"
_CODES = "item_not_found, config_invalid, share_group_limit"
_PAYOUTS = "withdraw.account_invalid, withdraw.limit_exceeded, withdraw.user_restricted"
INTERFACE = {
    **{place: _PLATFORM for place in TABLE.places if "cardpay" in place[1] or "walletpay" in place[1]},
    ("POST", METHOD): "invalid_parameter, backend unavailable",
    ("POST", f"{SUB}/{{sub_id}}/upgrade"): f"{_PLATFORM}, subscription_unsupported_upgrade, invalid_operation",
    ("POST", CODE): f"{_CODES}, asset_request_not_supported",
    ("POST", JOIN): f"{_CODES}, invalid_parameter",
    ("POST", WITHDRAW): f"invalid_parameter, {_PAYOUTS}",
    ("GET", WITHDRAW): "invalid_parameter",
}
"""The types of errors that the interface lists (§4.9-§4.13)."""


def test_each_row_has_a_request_that_succeeds() -> None:
    assert GOOD.keys() == set(TABLE.places)


@pytest.mark.parametrize("place", INTERFACE, ids=" ".join)
def test_the_route_table_lists_what_the_interface_does(place: Place) -> None:
    listed = {error.error_type for error in errors_of(TABLE.rows[place], place[1])}
    assert set(INTERFACE[place].split(", ")) - listed == set()


@pytest.mark.parametrize("place", TABLE.places, ids=" ".join)
async def test_each_listed_error_is_answered(till: Till, place: Place) -> None:
    case = Case(till, place, await GOOD[place](till))

    async def prepared() -> Case:
        return case

    assert await wrong_answers(TABLE.listed_at(place), prepared) == []
    status, answer = await till.ask(await GOOD[place](till))
    assert status == 200, answer
