"""The tests of listed errors find errors that are missing, wrong, or have no cause."""

from typing import Any

from app.geo.routes import GEO_ROUTES
from streams.wire.errors import AppNotFound, InternalError, RateLimited, Unavailable
from tests.app.http.rows.listed_errors import Answer, ErrorTable, Listed, wrong_answers

[ROW] = GEO_ROUTES
[PLACE, _] = [("GET", path) for path in ROW.paths]
GOOD = (404, {"error": {"error_type": "item_not_found"}})


def listed(answer: Answer) -> Listed:
    async def cause(case: Any) -> Answer:
        assert case == "the case"
        return answer

    return Listed("Missing", 404, "item_not_found", cause)


async def prepared() -> str:
    return "the case"


async def test_answers_other_than_the_listed_ones_are_reported() -> None:
    others = [(200, {}), (200, None), (400, GOOD[1]), (404, {"error": {"error_type": "not_found"}})]

    found = await wrong_answers([listed(GOOD), *map(listed, others)], prepared)

    assert [fault.split(":")[0] for fault in found] == ["Missing"] * len(others)
    assert "404 not_found" in found[-1]


async def test_an_error_without_a_cause_is_reported() -> None:
    assert await wrong_answers([Listed("Missing", 404, "item_not_found", None)], prepared) == [
        "Missing: nothing causes it"
    ]


async def test_a_row_without_a_body_has_no_error_type() -> None:
    assert await wrong_answers([Listed("Missing", 404, None, listed((404, None)).cause)], prepared) == []


def test_the_errors_of_a_row_are_those_that_no_other_test_causes() -> None:
    table = ErrorTable(GEO_ROUTES, elsewhere={AppNotFound: "another test"})

    errors = table.errors_at(PLACE)

    assert RateLimited in errors
    assert not {AppNotFound, InternalError, Unavailable} & set(errors)
