"""Logins and binds with third-party platforms, which the sandbox emulates (§2.2, §4.1, §4.5)."""

import asyncio
from urllib.parse import quote
from uuid import uuid4

import pytest
from yarl import URL

from storage.operators.audit import COMMAND
from tests.app.accounts.people import SOCIAL, ask, bind, enter, error_type, login, me, new_user
from tests.app.accounts.platforms import PROVIDERS, failures, proof
from tests.app.callers import token, working
from tests.app.sandbox_server import module_server, server, testbed
from tests.calendar.clock import epoch_s
from tests.running.config_stores import store_unchecked
from tests.running.servers import Server
from tests.waiting import until

__all__ = ["module_server", "server", "testbed"]

PROFILE = {
    "user_name": "Mei Lin",
    "avatar": "https://pictures.test/mei.png",
    "email": "",
    "region": "",
    "province": "北京",
    "city": "朝阳区",
    "gender": 2,
}


async def configure(server: Server, platform: str, **fields) -> None:
    value = {"base_url": f"{{sandbox}}/{PROVIDERS[platform]}", "audiences": ["sandbox-app"], **fields}
    await server.services.configs.put("default", "sign_in", platform, value, author="tests", origin=COMMAND)


@pytest.fixture
async def microblog(server: Server):
    """`microblog`, whose config a test may change."""
    yield "microblog"
    await configure(server, "microblog")


@pytest.mark.parametrize("platform", sorted(PROVIDERS))
async def test_each_platform_makes_a_user_that_the_next_login_finds(server, platform):
    subject = str(uuid4().int)[:18]
    first, _ = await enter(server, await proof(server, platform, subject))
    assert first["user"]["is_new_user"] is True
    assert set(first["bp_auth"]) == {"bp_auth_token", "expire_at_ms"}
    [account] = first["user"]["social_accounts"]
    assert account["platform"] == platform
    assert not {"access_token", "refresh_token", "social_profile"} & set(account)
    assert ("xid" in account) is (platform == "retail_platform")
    again, _ = await enter(server, await proof(server, platform, subject))
    assert again["user"]["uid"] == first["user"]["uid"]
    assert again["user"]["is_new_user"] is False
    assert again["user"]["social_accounts"] == [account]


async def test_an_access_token_of_a_tenant_that_the_config_does_not_name_is_refused(server):
    body = await proof(server, "software_vendor_id", kind="work")
    await configure(server, "software_vendor_id", issuers=["https://login.microsoftonline.com/contoso/v2.0"])
    try:
        status, reply = await login(server, body)
    finally:
        await configure(server, "software_vendor_id")
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")
    assert (await login(server, body))[0] == 200


async def test_a_bound_identity_has_the_ids_of_its_platform(server):
    _, session = await new_user(server)
    body = await proof(server, "im_network_b", "wechat-person")
    status, reply = await bind(server, session, body)
    assert status == 200
    assert reply["social_account"] == {
        "platform": "im_network_b",
        "id": "wechat-person",
        "openid": "wechat-person",
    }


async def test_200_concurrent_first_logins_of_one_identity_make_one_user(server):
    subject = str(uuid4().int)[:18]
    bodies = [await proof(server, "microblog", subject) for _ in range(200)]
    replies = await asyncio.gather(*(login(server, body) for body in bodies))
    assert {status for status, _ in replies} == {200}
    assert len({reply["user"]["uid"] for _, reply in replies}) == 1
    assert [reply["user"]["is_new_user"] for _, reply in replies].count(True) == 1


async def test_the_tokens_of_a_platform_are_shown_to_the_user_and_stored_encrypted(server):
    body = await proof(server, "microblog")
    _, session = await enter(server, body)
    [account] = (await me(server, session))["social_accounts"]
    assert account["access_token"] == body["microblog"]["access_token"]
    assert abs(account["expiration_date"] - epoch_s() - 7200) < 60
    async with server.services.database.connection() as conn:
        rows = await conn.fetch("select identities::text as row from identities")
    assert not [row for row in rows if account["access_token"] in row["row"]]


async def test_a_profile_is_fetched_after_the_login_and_listed(server):
    subject = str(uuid4().int)[:18]
    reply, session = await enter(server, await proof(server, "microblog", subject))
    uid = reply["user"]["uid"]
    async with working(server.services):

        async def profiles():
            _, own = await ask(server, "GET", "/bp/user/me/social_profiles", headers=session)
            return own["social_profiles"]

        await until(profiles)
        assert await profiles() == [{"social_id": subject, "platform": "microblog", **PROFILE}]
    [account] = (await me(server, session))["social_accounts"]
    assert account["social_profile"] == (await profiles())[0]
    other, _ = await new_user(server)
    unknown = uuid4().hex
    status, reply = await server_profiles(server, uid, f"{uid},{other},,x, {unknown},{uid}")
    assert (status, reply) == (
        200,
        {
            "social_profile": {uid: await profiles(), other: []},
            "inexistent_user_ids": ["x", unknown],
        },
    )


async def server_profiles(server, uid: str, user_ids: str, **claims: str):
    path = f"/bp/server/user/{uid}/social_profile"
    return await ask(server, "GET", path, params={"user_ids": user_ids}, headers=token(**claims))


async def test_a_token_for_one_user_reads_the_profiles_of_no_other_user(server):
    uid, _ = await new_user(server)
    other, _ = await new_user(server)
    for user_ids in (other, f"{uid},{other}", f"{uid},unknown"):
        status, reply = await server_profiles(server, uid, user_ids, sub=uid)
        assert (status, error_type(reply)) == (403, "permission_denied")
        assert (await server_profiles(server, uid, user_ids))[0] == 200
    status, reply = await server_profiles(server, uid, f"{uid},{uid}", sub=uid)
    assert (status, reply) == (200, {"social_profile": {uid: []}, "inexistent_user_ids": []})


async def test_profiles_of_other_users_need_a_server_token(server):
    uid, session = await new_user(server)
    path = f"/bp/server/user/{uid}/social_profile?user_ids={uid}"
    assert (await ask(server, "GET", path, headers=session))[0] == 401
    for user_ids in ("", " , "):
        assert (await server_profiles(server, uid, user_ids))[0] == 400
    assert (await server_profiles(server, uid, ",".join(uuid4().hex for _ in range(101))))[0] == 400


async def test_a_refused_proof_has_one_text_and_a_trace_with_the_reason(server):
    texts = set()
    other_app = await proof(server, "microblog", app="an-app-of-others")
    expired = await proof(server, "microblog", expires_in=0)
    unknown = {"microblog": {"access_token": "no-token-of-the-platform"}}
    for body in (other_app, expired, unknown):
        request_id = uuid4().hex
        status, reply = await login(server, body, headers={"X-Request-Id": request_id})
        assert (status, error_type(reply)) == (400, "account.sp_auth_failed")
        texts.add(reply["error"]["message"])
        [failure] = await failures(server, request_id=request_id)
        assert (failure["operation"], failure["platform"]) == ("login", "microblog")
        assert failure["error_type"] == "account.sp_auth_failed"
        assert body["microblog"]["access_token"] not in str(failure)
        if body is other_app:
            assert {"seen": "an-app-of-others", "allowed": ["sandbox-app"]}.items() <= failure["steps"][2].items()
    assert len(texts) == 1
    assert "microblog" not in texts.pop()


async def test_the_trace_of_a_failed_bind_names_the_identity_and_the_user(server):
    uid, session = await new_user(server)
    subject = str(uuid4().int)[:18]
    await enter(server, await proof(server, "microblog", subject))
    assert (await bind(server, session, await proof(server, "microblog", subject)))[0] == 400
    [failure] = await failures(server, platform="microblog", social_id=subject)
    assert (failure["operation"], failure["user_id"]) == ("bind", uid)
    assert failure["error_type"] == "account.sp_linked_another"
    assert await failures(server, user_id=uid) == [failure]


@pytest.mark.parametrize("fault", ["unavailable", "refuse", "wrong_content_type", "malformed_frame", "redirect"])
async def test_a_platform_that_does_not_answer_is_a_gateway_error(server, microblog, fault):
    await configure(server, microblog, breaker={"min_calls": 1000})
    body = await proof(server, "microblog", fault=fault)
    status, reply = await login(server, body)
    assert (status, error_type(reply)) == (502, "gateway")
    assert body["microblog"]["access_token"] not in str(reply)


async def test_a_failing_platform_is_not_called_for_a_while(server, microblog):
    await configure(server, microblog, breaker={"min_calls": 2, "open_s": 600})
    for _ in range(2):
        assert (await login(server, await proof(server, microblog, fault="unavailable")))[0] == 502
    assert (await login(server, await proof(server, microblog)))[0] == 502
    assert (await login(server, await proof(server, "photo_network")))[0] == 200


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"audiences": []}, "audiences must not be empty"),
        ({"enabled": False}, "enabled is false"),
        ({"provider": "wechat"}, "provider wechat cannot prove microblog"),
        ({"provider": "google"}, "provider google cannot prove microblog"),
    ],
)
async def test_a_stored_config_that_is_not_sufficient_is_named(server, microblog, fields, problem):
    value = {"base_url": "{sandbox}/weibo", "audiences": ["sandbox-app"], **fields}
    await store_unchecked(server.services, "sign_in", microblog, value)
    status, reply = await login(server, await proof(server, microblog))
    assert (status, error_type(reply)) == (422, "config_invalid")
    assert reply["error"]["message"] == f"config_invalid: sign_in {microblog}: {problem}"


async def test_an_app_without_a_config_has_no_platform(server):
    await server.services.configs.put("bare", "apps", "default", {}, author="tests", origin=COMMAND)
    auth = {"require_sign": False}
    await server.services.configs.put("bare", "auth", "default", auth, author="tests", origin=COMMAND)
    headers = {"X-Service-App-Id": "bare"}
    status, reply = await login(server, await proof(server, "microblog"), headers=headers)
    assert (status, error_type(reply)) == (422, "config_invalid")
    assert (await login(server, {"android_games_service": {"player_id": "p"}}, headers=headers))[0] == 200


async def test_an_identity_is_named_in_a_path_whatever_its_characters_are(server):
    person = "a b{c}/d%2F\u00fc\u4e2d?x=1#;&+%"
    path = f"search_vendor_id/{quote(person, safe='')}"
    for own, headers in ((True, None), (False, token())):
        uid, session = await new_user(server)
        assert (await bind(server, session, {"android_games_service": {"player_id": uuid4().hex}}))[0] == 200
        status, reply = await bind(server, session, await proof(server, "search_vendor_id", person))
        assert (status, reply["social_account"]["id"]) == (200, person)
        url = URL(f"{server.url}{SOCIAL if own else f'/bp/server/user/{uid}/socialaccount'}/{path}", encoded=True)
        async with server.http.delete(url, headers=headers or session) as response:
            assert response.status == 200
        async with server.http.delete(url, headers=headers or session) as response:
            assert (response.status, error_type(await response.json())) == (404, "item_not_found")


async def test_im_network_a_needs_the_person_of_the_token(server):
    body = await proof(server, "im_network_a", "person-of-the-token")
    body["im_network_a"]["open_id"] = "another person"
    status, reply = await login(server, body)
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")


async def test_an_access_token_is_renewed(server):
    platform = "social_network_a"
    subject = str(uuid4().int)[:15]
    first = await proof(server, platform, subject)
    _, session = await enter(server, first)
    again = await proof(server, platform, subject)
    path = f"{SOCIAL}/{platform}/{subject}"
    status, reply = await ask(server, "PUT", path, json=again, headers=session)
    assert status == 200
    assert reply["social_account"]["access_token"] == again[platform]["access_token"]
    assert {"platform": platform, "id": subject}.items() <= reply["social_account"].items()
    [account] = (await me(server, session))["social_accounts"]
    assert account["access_token"] == again[platform]["access_token"]

    for_ever = await proof(server, platform, subject, extra={"expires_at": 0})
    _, reply = await ask(server, "PUT", path, json=for_ever, headers=session)
    assert (reply["social_account"]["expiration_date"], set(reply)) == (0, {"social_account"})
    async with server.services.database.connection() as conn:
        issued = await conn.fetchval("select count(*) from bp_auth_tokens where social_id = $1", subject)
    assert issued == 1, "that of the login"

    another = str(uuid4().int)[:15]
    of_another = await proof(server, platform, another)
    status, reply = await ask(server, "PUT", path, json=of_another, headers=session)
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")
    [failure] = await failures(server, platform=platform, social_id=subject)
    assert failure["steps"][-2]["seen"] == "another one"
    assert another not in str(failure)
    status, reply = await ask(server, "PUT", f"{SOCIAL}/{platform}/1", json=again, headers=session)
    assert (status, error_type(reply)) == (404, "item_not_found")
    status, reply = await ask(server, "PUT", f"{SOCIAL}/microblog/{subject}", json=again, headers=session)
    assert (status, error_type(reply)) == (400, "invalid_parameter")


async def lose_valkey(server: Server) -> None:
    """Delete all data of the server in Valkey."""
    client, prefix = server.services.valkey.client, server.services.settings.redis_prefix
    if names := [name async for name in client.scan_iter(f"{prefix}*", count=10_000)]:
        await client.delete(*names)


async def test_a_signature_of_a_game_service_counts_once(server):
    body = await proof(server, "ios_games_service")
    assert (await login(server, body))[0] == 200
    await lose_valkey(server)
    status, reply = await login(server, body)
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")
    player_id = body["ios_games_service"]["team_player_id"]
    [failure] = await failures(server, platform="ios_games_service", social_id=player_id)
    assert failure["steps"][-2]["step"] == "the proof was used before"


@pytest.mark.parametrize("field", ["public_key_url", "salt", "signature", "timestamp"])
async def test_a_signature_without_all_of_its_fields_is_an_invalid_parameter_and_no_refused_proof(
    server, field: str
):
    rates = {"rates": {"login_address": {"count": 1, "per_s": 900}}}
    configs = server.services.configs
    await configs.put("default", "limits", "default", rates, author="tests", origin=COMMAND)
    body = await proof(server, "ios_games_service")
    del body["ios_games_service"][field]
    for _ in range(2):
        status, reply = await login(server, body)
        expected = f"invalid_parameter: ios_games_service.{field} is required"
        assert (status, reply["error"]["message"]) == (400, expected)
    await configs.put("default", "limits", "default", {}, author="tests", origin=COMMAND)


async def test_an_opaque_token_is_refused_if_a_nonce_is_required(server):
    given = {"client_id": "sandbox-app", "client_secret": "sandbox-secret"}
    await configure(server, "social_network_a", **given)
    assert (await login(server, await proof(server, "social_network_a")))[0] == 200
    await configure(server, "social_network_a", **given, require_nonce=True)
    status, reply = await login(server, await proof(server, "social_network_a"))
    await configure(server, "social_network_a", **given)
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")
    failure, *_ = await failures(server, platform="social_network_a")
    assert failure["steps"][0]["allowed"] == "required: access_token"
    assert failure["steps"][-2]["allowed"] == "an id token of Limited Login"


async def test_require_nonce_is_refused_where_no_proof_has_a_nonce(server, microblog):
    body = await proof(server, microblog)
    await configure(server, microblog, require_nonce=True)
    assert error_type((await login(server, body))[1]) == "config_invalid"


async def test_an_id_token_whose_nonce_is_another_is_refused(server):
    body = await proof(server, "search_vendor_id")
    body["search_vendor_id"]["nonce"] = "of another login"
    status, reply = await login(server, body)
    assert (status, error_type(reply)) == (400, "account.sp_auth_failed")


async def test_the_subject_of_a_token_must_be_the_id_that_is_sent(server):
    for platform in ("ios_vendor_id", "social_network_a"):
        body = await proof(server, platform)
        body[platform]["id"] = "somebody else"
        status, reply = await login(server, body)
        assert (status, error_type(reply)) == (400, "account.sp_auth_failed")


async def test_a_profile_in_the_proof_is_shown_at_once(server):
    _, session = await enter(server, await proof(server, "search_vendor_id"))
    [account] = (await me(server, session))["social_accounts"]
    assert account["social_profile"]["user_name"] == PROFILE["user_name"]


async def test_refused_proofs_of_one_address_are_limited(server):
    rates = {"rates": {"login_address": {"count": 2, "per_s": 900}}}
    configs = server.services.configs
    await configs.put("default", "limits", "default", rates, author="tests", origin=COMMAND)
    for left in (1, 0):
        body = {"microblog": {"access_token": "unknown"}}
        async with server.http.post(f"{server.url}/bp/user/login", json=body) as response:
            found = response.status, response.headers["RateLimit-Policy"], response.headers["RateLimit"]
        assert found[:2] == (400, '"login_address";q=2;w=900')
        assert found[2].startswith(f'"login_address";r={left};t=')
    status, reply = await login(server, await proof(server, "microblog"))
    assert (status, error_type(reply)) == (429, "api_rate_limit")
    assert (await ask(server, "POST", "/bp/server/user/login", json=await proof(server, "microblog"),
                      headers=token()))[0] == 200  # fmt: skip
    await configs.put("default", "limits", "default", {}, author="tests", origin=COMMAND)


async def test_a_profile_that_the_platform_refuses_is_not_asked_for_again(server):
    subject = str(uuid4().int)[:18]
    body = await proof(server, "microblog", subject, fault="unauthorized", fault_at="profile")
    _, session = await enter(server, body)

    async def jobs():
        async with server.services.database.connection() as conn:
            return await conn.fetchval(
                "select count(*) from procrastinate_jobs where args ->> 'social_id' = $1", subject
            )

    assert await jobs() == 1
    async with working(server.services):
        await until(lambda: _none(jobs))
    [account] = (await me(server, session))["social_accounts"]
    assert "social_profile" not in account


async def _none(count) -> bool:
    return await count() == 0
