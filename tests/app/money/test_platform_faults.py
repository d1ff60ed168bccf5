"""A fault of a payment platform is `backend unavailable` wherever one is called. A repeat completes the request."""

import asyncio
from uuid import uuid4

import pytest

from storage.assets.differences import find_differences
from streams.wire.codec import dumps
from streams.wire.errors import BackendUnavailable, Unavailable
from tests.app.money.error_causes import IMPOSSIBLE, ROWS
from tests.app.money.good_requests import GOOD
from tests.app.money.till import Answer, Place, Request, Till
from tests.sampling import sampled
from vendors.sandbox.faults import Fault, key_of

FAULTS = {
    "reset": {"fault": Fault.REFUSE},
    "timeout": {"fault": Fault.HANG_BEFORE_HEADERS},
    "lost answer": {"fault": Fault.CUT_MID_STREAM, "position": "before"},
    "500": {"fault": Fault.SERVER_ERROR},
    "503": {"fault": Fault.UNAVAILABLE},
    "429": {"fault": Fault.RATE_LIMITED},
    "401": {"fault": Fault.UNAUTHORIZED},
    "garbage": {"fault": Fault.MALFORMED_FRAME},
    "redirect": {"fault": Fault.REDIRECT},
}
CALLING = sorted(
    place
    for place, row in ROWS.items()
    if any(issubclass(error, BackendUnavailable) and (place, error) not in IMPOSSIBLE for error in row.errors)
)
"""The places whose handlers call a platform."""
_REFUSED = "http://127.0.0.1:9"
"""Nothing listens there."""


async def prepared(till: Till, place: Place) -> Request:
    """A request that can be repeated."""
    request = await GOOD[place](till)
    return request.having(Idempotency_Key=uuid4().hex) if ROWS[place].inputs.transaction is not None else request


def error_of(answer: Answer) -> tuple[int, str]:
    status, reply = answer
    return status, reply["error"]["error_type"] if reply and "error" in reply else ""


def allowed(place: Place, fault: str) -> set[tuple[int, str]]:
    """What the documentation of an endpoint promises."""
    is_webhook = any(issubclass(error, Unavailable) for error in ROWS[place].errors)
    expected = {(503 if is_webhook else 400, BackendUnavailable.error_type)}
    return expected | {(422, "config_invalid")} if fault == "401" else expected


@pytest.mark.parametrize(
    "fault", sampled(["refused", *FAULTS], ["timeout", "lost answer", "503", "401", "garbage"])
)
async def test_each_fault_is_answered_and_a_repeat_completes_the_request_once(till: Till, fault: str) -> None:
    requests = {place: await prepared(till, place) for place in CALLING}
    before = max((entry.id for entry in till.sandbox.bill.since(0)), default=0)
    secret = key_of(**FAULTS[fault], retry_after_s=0.01) if fault in FAULTS else "sandbox"
    where = {} if fault in FAULTS else {"base_url": _REFUSED}
    async with till.with_platforms(secret, **where):
        answers = await asyncio.gather(*map(till.ask, requests.values()))
    found = {place: error_of(answer) for place, answer in zip(requests, answers, strict=True)}
    assert {place: error for place, error in found.items() if error not in allowed(place, fault)} == {}
    again = await asyncio.gather(*map(till.ask, requests.values()))
    assert {place: answer for place, answer in zip(requests, again, strict=True) if answer[0] != 200} == {}
    for request in requests.values():
        assert await keys_in_vain(till, request, since=before) == {}
    assert [difference async for difference in find_differences(till.server.services.database)] == []
    twice = (
        "select count(*) from (select from asset_entries where kind = 'grant' group by uid having count(*) > 1) u"
    )
    assert await till.fetch(twice) == 0


MOVING = [place for place in CALLING if ROWS[place].inputs.transaction is not None]
"""The places whose handlers may let a platform do something."""
_CALLS = 20
"""More calls than any request makes."""


@pytest.mark.parametrize("place", MOVING, ids=" ".join)
async def test_the_lost_answer_to_each_call_leaves_what_a_repeat_completes_once(till: Till, place: Place) -> None:
    for skipped in range(_CALLS):
        request = await prepared(till, place)
        before = max((entry.id for entry in till.sandbox.bill.since(0)), default=0)
        async with till.with_platforms(key_of(**FAULTS["lost answer"], skip=skipped, name=uuid4().hex)):
            answer = await till.ask(request)
        if answer[0] == 200:
            break
        assert error_of(answer) in allowed(place, "lost answer"), answer
        status, reply = await till.ask(request)
        assert status == 200, reply
        assert await keys_in_vain(till, request, since=before) == {}
    assert 0 < skipped < _CALLS - 1
    assert [difference async for difference in find_differences(till.server.services.database)] == []


async def keys_in_vain(till: Till, request: Request, *, since: int) -> dict[str, set[str]]:
    """The keys of what was asked of a platform for one user under more than one key, by path."""
    customer = await till.fetch("select customer_id from card_customers where uid = $1", request.uid)
    keys: dict[str, set[str]] = {}
    for entry in till.sandbox.bill.since(since):
        asked = dumps(entry.asked).decode()
        if entry.asked.get("key") and request.uid and (request.uid in asked or (customer and customer in asked)):
            keys.setdefault(entry.asked["path"], set()).add(entry.asked["key"])
    return {path: given for path, given in keys.items() if len(given) > 1}
