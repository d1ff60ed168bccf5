"""Goes through the flows of `clients/cases` with the TypeScript client."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.clients.flows import check, confirm_card, filled
from tests.clients.typescript.conftest import PROMPT
from tests.clients.typescript.program import ClientError, Program
from tests.running.servers import SERVER_KEY, Server

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
    "account.confirm_deactivation": lambda program: program.call("account.confirmDeactivation"),
    "account.deactivate": lambda program: program.call("account.deactivate"),
    "assets": lambda program: program.call("assets"),
    "cards.cancel": lambda program, sub_id: program.call("cards.cancel", sub_id),
    "cards.create_setup_intent": lambda program, **given: program.call("cards.createSetupIntent", given),
    "cards.subscribe": lambda program, **given: program.call("cards.subscribe", given),
    "cards.subscription": lambda program, sub_id: program.call("cards.subscription", sub_id),
    "converse": converse,
    "history": lambda program, conversation_id, **given: program.call("history", conversation_id, given),
    "ip_location": lambda program: program.call("ipLocation"),
    "join_share_group": lambda program, share_code: program.call("sharing.join", share_code),
    "leaderboards.query": lambda program, name, **given: program.call("leaderboards.query", name, given),
    "leaderboards.upload": lambda program, name, score, **given: program.call(
        "leaderboards.upload", name, score, given
    ),
    "offers": lambda program: program.call("offers"),
    "share_code": lambda program, **given: program.call("sharing.code", given),
    "sign_in": lambda program, platform, info: program.call("signIn", platform, info),
    "sign_out": lambda program: program.call("signOut"),
    "user": lambda program: program.call("user"),
}


async def go_through(program: Program, server: Server, steps: list[Given]) -> None:
    await program.do("client", name="user", url=server.url, options={"backoff": PROMPT})
    results: list[Any] = []

    async def confirm(program: Program, setup_intent_id: str) -> Any:
        session = (await program.call("session"))["token"]
        return await confirm_card(server, session, setup_intent_id=setup_intent_id)

    async def erasure_receipt(program: Program, user_id: str) -> Any:
        key = {"kid": "development", "alg": "HS256", "key": SERVER_KEY}
        await program.do("appServer", name="server", url=server.url, key=key, user=user_id)
        return await program.call("erasureReceipt")

    calls = CALLS | {"confirm_card": confirm, "server.erasure_receipt": erasure_receipt}
    for step in steps:
        call = calls[step["call"]](program, **filled(step["with"], results))
        if "error" in step:
            with pytest.raises(ClientError) as raised:
                await call
            results.append(raised.value.error)
            expected = {ERROR_FIELDS[name]: value for name, value in step["error"].items()}
            assert {name: raised.value.error[name] for name in expected} == expected
        else:
            results.append(await call)
            check(results[-1], filled(step["seen"], results))
