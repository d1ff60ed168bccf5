"""What both clients need to go through the flows of `clients/cases`."""

from functools import reduce
from operator import getitem
from typing import Any

from parley_client import sign
from streams.wire.codec import dumps
from tests.app.callers import ask
from tests.running.servers import Server


def filled(value: Any, results: list[Any]) -> Any:
    """Return a value in which `{step, field}` is the field of the result of an earlier step."""
    if isinstance(value, dict):
        if value.keys() == {"step", "field"}:
            return reduce(getitem, value["field"].split("."), results[value["step"]])
        return {name: filled(inner, results) for name, inner in value.items()}
    return value


CARD = {"number": "4242424242424242", "exp_month": "12", "exp_year": "2040", "cvc": "123"}


async def confirm_card(server: Server, session: str, *, setup_intent_id: str, sign_key: str | None = None) -> Any:
    """Enter a test card, as the user does at the platform."""
    path = "/bp/asset/debug/cardpay_setup_intent/confirm"
    body = dumps({"setup_intent_id": setup_intent_id, "card": CARD})
    headers = {"X-Service-Session-Token": session, "Content-Type": "application/json"}
    if sign_key is not None:
        headers["X-Service-Sign"] = sign(sign_key, "POST", path, body)
    status, reply = await ask(server, "POST", path, data=body, headers=headers)
    assert status == 200, reply
    return reply


def check(seen: Any, expected: Any) -> None:
    """Check that `seen` has the expected fields. It may have others."""
    if isinstance(expected, dict):
        assert expected.keys() <= (seen or {}).keys(), seen
        for name, value in expected.items():
            check(seen[name], value)
    elif isinstance(expected, list):
        assert len(seen) == len(expected)
        for one, other in zip(seen, expected, strict=True):
            check(one, other)
    else:
        assert seen == expected
