"""Withdrawals and payments need a server token that is valid for one call (decisions 3.3)."""

import asyncio
from uuid import uuid4

import pytest

from tests.app.callers import token
from tests.app.money.good_requests import GOOD, INTENTS, WITHDRAW
from tests.app.money.till import Answer, Place, Request, Till

PLACES = [("POST", WITHDRAW), ("GET", WITHDRAW), ("POST", INTENTS), ("GET", f"{INTENTS}/{{payment_intent_id}}")]
REFUSED = (401, "auth_failed")

each_place = pytest.mark.parametrize("place", PLACES, ids=" ".join)


async def ask(till: Till, request: Request, **claims: str) -> Answer:
    """Send a request with a token of these claims. Return the status, and the type of the error if it is one."""
    header = token(scope=request.scope, **claims)
    status, answer = await till.ask(request.having(**header))
    return status, answer["error"]["error_type"] if "error" in answer else None


@each_place
async def test_a_token_is_valid_for_one_call(till: Till, place: Place) -> None:
    request = await GOOD[place](till)
    once, other = uuid4().hex, uuid4().hex
    assert await ask(till, request) == REFUSED
    assert await ask(till, request, jti=once) == (200, None)
    assert await ask(till, request, jti=once) == REFUSED
    assert await ask(till, request, jti=other) == (200, None)


@each_place
async def test_one_of_concurrent_calls_with_a_token_succeeds(till: Till, place: Place) -> None:
    request, once = await GOOD[place](till), uuid4().hex
    answers = await asyncio.gather(*(ask(till, request, jti=once) for _ in range(8)))
    assert sorted(answers, key=str) == [(200, None), *[REFUSED] * 7]


@each_place
async def test_no_call_is_accepted_while_tokens_cannot_be_checked(till: Till, place: Place) -> None:
    request, used, unused = await GOOD[place](till), uuid4().hex, uuid4().hex
    assert await ask(till, request, jti=used) == (200, None)
    await till.valkey.stop()
    during = [await ask(till, request, jti=jti) for jti in (used, unused)]
    await till.valkey.start()
    assert during == [(503, "backend unavailable")] * 2
    assert await ask(till, request, jti=unused) == (200, None)
    assert await ask(till, request, jti=used) == REFUSED


async def test_a_repeat_with_its_key_and_another_token_has_the_same_answer(till: Till) -> None:
    for place in [("POST", WITHDRAW), ("POST", INTENTS)]:
        request = (await GOOD[place](till)).having(Idempotency_Key=uuid4().hex)
        first, second = [await till.ask(request) for _ in range(2)]
        assert first == second
        assert first[0] == 200, first
    request = await GOOD["POST", WITHDRAW](till)
    first, second = [await till.ask(request) for _ in range(2)]
    assert first == second
    assert first[0] == 200, first
