"""The flows that both clients share: what is done against a server, and what must be seen."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from parley_client import ParleyClient, ParleyError
from tests.clients.cases import SIGN_KEY, cases, named
from tests.clients.flows import check, filled
from tests.clients.python.conftest import PROMPT
from tests.running.servers import Server


async def converse(client: ParleyClient, **given: Any) -> dict[str, Any]:
    turn = client.converse(**given)
    end = await turn.finish()
    return {"text": turn.text, "user_input": turn.user_input, **end.content}


CALLS: dict[str, Callable[..., Awaitable[Any]]] = {
    "assets": ParleyClient.assets,
    "converse": converse,
    "history": ParleyClient.history,
    "leaderboards.query": lambda client, **given: client.leaderboards.query(**given),
    "leaderboards.upload": lambda client, **given: client.leaderboards.upload(**given),
    "sign_in": lambda client, platform, info: client.sign_in(platform, info),
    "sign_out": ParleyClient.sign_out,
    "user": ParleyClient.user,
}


@pytest.mark.parametrize("flow", **named(cases("flows")))
async def test_a_flow(server: Server, strategy, flow: dict) -> None:
    for name, model in flow["strategies"].items():
        await strategy(name, model)
    results: list[Any] = []
    async with ParleyClient(server.url, sign_key=SIGN_KEY, backoff=PROMPT) as client:
        for step in flow["steps"]:
            given = {name: filled(value, results) for name, value in step["with"].items()}
            results.append(await outcome(CALLS[step["call"]](client, **given)))
            if expected := step.get("error"):
                assert {name: getattr(results[-1], name, None) for name in expected} == expected
            else:
                check(results[-1], filled(step["seen"], results))


async def outcome(call: Awaitable[Any]) -> Any:
    """Return the result of a call, or its error."""
    try:
        return await call
    except ParleyError as error:
        return error
