"""Goes through the flows of `clients/cases` with the Python client."""

from collections.abc import Awaitable, Callable
from typing import Any

from parley_client import ParleyClient, ParleyError, ServerClient, ServerKey
from tests.clients.cases import SIGN_KEY
from tests.clients.flows import check, confirm_card, filled
from tests.clients.python.conftest import PROMPT
from tests.running.servers import SERVER_KEY, Server

KEY = ServerKey("development", "HS256", SERVER_KEY)


async def converse(client: ParleyClient, **given: Any) -> dict[str, Any]:
    turn = client.converse(**given)
    end = await turn.finish()
    return {"text": turn.text, "user_input": turn.user_input, **end.content}


CALLS: dict[str, Callable[..., Awaitable[Any]]] = {
    "account.confirm_deactivation": lambda client: client.account.confirm_deactivation(),
    "account.deactivate": lambda client: client.account.deactivate(),
    "assets": ParleyClient.assets,
    "cards.cancel": lambda client, **given: client.cards.cancel(**given),
    "cards.create_setup_intent": lambda client, **given: client.cards.create_setup_intent(**given),
    "cards.subscribe": lambda client, **given: client.cards.subscribe(**given),
    "cards.subscription": lambda client, **given: client.cards.subscription(**given),
    "converse": converse,
    "history": ParleyClient.history,
    "ip_location": ParleyClient.ip_location,
    "join_share_group": ParleyClient.join_share_group,
    "leaderboards.query": lambda client, **given: client.leaderboards.query(**given),
    "leaderboards.upload": lambda client, **given: client.leaderboards.upload(**given),
    "offers": ParleyClient.offers,
    "share_code": ParleyClient.share_code,
    "sign_in": lambda client, platform, info: client.sign_in(platform, info),
    "sign_out": ParleyClient.sign_out,
    "user": ParleyClient.user,
}


async def go_through(server: Server, steps: list[dict[str, Any]]) -> None:
    async with (
        ParleyClient(server.url, sign_key=SIGN_KEY, backoff=PROMPT) as client,
        ServerClient(server.url, "default", KEY) as backend,
    ):
        calls = CALLS | {
            "confirm_card": lambda client, **given: confirm_card(
                server, client.session.token, sign_key=SIGN_KEY, **given
            ),
            "server.erasure_receipt": lambda _, user_id: backend.user(user_id).erasure_receipt(),
        }
        results: list[Any] = []
        for step in steps:
            results.append(await outcome(calls[step["call"]](client, **filled(step["with"], results))))
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
