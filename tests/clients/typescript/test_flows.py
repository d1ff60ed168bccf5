"""The flows that both clients share: what is done against a server, and what must be seen."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.clients.cases import cases, named
from tests.clients.flows import check, filled
from tests.clients.typescript.conftest import PROMPT, Configure
from tests.clients.typescript.program import ClientError, Program
from tests.running.servers import Server

ERROR_FIELDS = {"error_type": "errorType", "status": "status", "retryable": "retryable"}
Given = dict[str, Any]


def camel(given: Given) -> Given:
    """Return options with names in camel case."""
    split = {name: name.split("_") for name in given}
    return {first + "".join(map(str.title, rest)): given[name] for name, (first, *rest) in split.items()}


async def converse(program: Program, **given: Any) -> Given:
    turn = await program.read(options=camel(given)).ended()
    return {"text": turn["text"], "user_input": turn["userInput"], **turn["end"]}


CALLS: dict[str, Callable[..., Awaitable[Any]]] = {
    "assets": lambda program: program.call("assets"),
    "converse": converse,
    "history": lambda program, conversation_id, **given: program.call("history", conversation_id, given),
    "leaderboards.query": lambda program, name, **given: program.call("leaderboards.query", name, given),
    "leaderboards.upload": lambda program, name, score, **given: program.call(
        "leaderboards.upload", name, score, given
    ),
    "sign_in": lambda program, platform, info: program.call("signIn", platform, info),
    "sign_out": lambda program: program.call("signOut"),
    "user": lambda program: program.call("user"),
}


@pytest.mark.parametrize("flow", **named(cases("flows")))
async def test_a_flow(program: Program, server: Server, strategy: Configure, flow: Given) -> None:
    for name, model in flow["strategies"].items():
        await strategy(name, model)
    await program.do("client", name="user", url=server.url, options={"backoff": PROMPT})
    results: list[Any] = []
    for step in flow["steps"]:
        call = CALLS[step["call"]](program, **filled(step["with"], results))
        if "error" in step:
            with pytest.raises(ClientError) as raised:
                await call
            results.append(raised.value.error)
            expected = {ERROR_FIELDS[name]: value for name, value in step["error"].items()}
            assert {name: raised.value.error[name] for name in expected} == expected
        else:
            results.append(await call)
            check(results[-1], filled(step["seen"], results))
