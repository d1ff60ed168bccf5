"""Ids and tokens that no platform can have issued: a mistake of the request, because no platform is asked."""

import re
from typing import Any
from uuid import uuid4

import pytest

from storage.operators.audit import COMMAND
from tests.app.accounts.people import bind, enter, error_type, login, me, new_user, player
from tests.app.accounts.platforms import PROVIDERS, proof
from tests.app.sandbox_server import module_server, server, testbed
from tests.running.config_stores import store_unchecked
from tests.running.servers import Server
from vendors.sandbox.signin.game_center_keys import ROOT

__all__ = ["module_server", "server", "testbed"]

GAMES = "ios_games_service"
EDGES = " \u00a0{}\u200b\r\n\ufeff"
HINT = "must have only visible ASCII characters, without blanks"
FIELDS = {
    "ios_vendor_id": "identity_token",
    "search_vendor_id": "id_token",
    "social_network_a": "access_token",
    "software_vendor_id": "access_token",
    "microblog": "access_token",
    "chat_network": "access_token",
    "im_network_a": "access_token",
    "photo_network": "code",
    "im_network_b": "code",
    "payment_wallet_a": "code",
    "retail_platform": "code",
    "ios_games_service": "team_player_id",
    "android_games_service": "player_id",
}


async def configure(server: Server, **fields: Any) -> None:
    value = {"base_url": "{sandbox}/game_center", "key_roots": [ROOT], **fields}
    await server.services.configs.put("default", "sign_in", GAMES, value, author="tests", origin=COMMAND)


async def sent(server: Server, platform: str) -> dict[str, Any]:
    return await proof(server, platform, str(uuid4().int)[:15]) if platform in PROVIDERS else player()


@pytest.mark.parametrize(("platform", "field"), FIELDS.items())
async def test_an_id_or_token_with_a_blank_is_an_invalid_parameter(server, platform, field):
    body = await sent(server, platform)
    for blank in (" ", "\u00a0", "\n", "é"):
        wrong = {platform: {**body[platform], field: f"{body[platform][field][:3]}{blank}x"}}
        status, reply = await login(server, wrong)
        assert (status, reply["error"]["message"]) == (400, f"invalid_parameter: {platform}.{field} {HINT}")
    status, reply = await login(server, {platform: {**body[platform], field: "x" * 20_000}})
    assert status == 400
    assert re.search(rf"{platform}\.{field} must be at most \d+ characters", reply["error"]["message"])
    body[platform][field] = EDGES.format(body[platform][field])
    assert (await login(server, body))[0] == 200


async def test_blanks_around_a_player_id_make_no_other_user(server):
    player_id = uuid4().hex
    first, session = await enter(server, player(player_id))
    again, _ = await enter(server, player(EDGES.format(player_id)))
    assert first["user"]["uid"] == again["user"]["uid"]
    [account] = (await me(server, session))["social_accounts"]
    assert account["id"] == player_id
    _, other = await new_user(server)
    status, reply = await bind(server, other, player("a b"))
    assert (status, reply["error"]["message"]) == (
        400,
        f"invalid_parameter: android_games_service.player_id {HINT}",
    )


@pytest.mark.parametrize("field", ["salt", "signature"])
async def test_wrapped_base64_is_accepted_and_anything_else_is_an_invalid_parameter(server, field):
    body = await proof(server, GAMES)
    value = body[GAMES][field]
    for wrong in ("not base64", f"{value}!", value[:-1] + "\u00e9"):
        status, reply = await login(server, {GAMES: {**body[GAMES], field: wrong}})
        assert (status, reply["error"]["message"]) == (400, f"invalid_parameter: {GAMES}.{field} must be base64")
    wrapped = f" {value[:3]}\r\n{value[3:]}\n"
    assert (await login(server, {GAMES: {**body[GAMES], field: wrapped}}))[0] == 200


@pytest.fixture
async def games(server: Server):
    """`ios_games_service`, whose config a test may change."""
    yield GAMES
    await configure(server, bundle_ids=["sandbox-app"])


async def test_audiences_are_no_bundle_ids(server, games):
    body = await proof(server, games)
    problem = "bundle_ids must list the bundle ids of your apps; audiences is not used"
    value = {"base_url": "{sandbox}/game_center", "key_roots": [ROOT], "audiences": ["sandbox-app"]}
    await store_unchecked(server.services, "sign_in", games, value)
    status, reply = await login(server, body)
    assert (status, reply["error"]["message"]) == (422, f"config_invalid: sign_in {games}: {problem}")
    await configure(server, audiences=["sandbox-app"], bundle_ids=["com.another.app"])
    status, reply = await login(server, body)
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")
    await configure(server, audiences=["com.another.app"], bundle_ids=["sandbox-app"])
    assert (await login(server, body))[0] == 200
