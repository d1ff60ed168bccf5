"""The sandbox's sign-in providers: how proofs are issued, and the peculiarities of each protocol."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest

from streams.wire.codec import dumps, loads
from vendors.sandbox.server import SIGN_IN, Running


@pytest.fixture
async def session(sandbox: Running) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(sandbox.url) as opened:
        yield opened


async def issued(session: aiohttp.ClientSession, provider: str, **issue: Any) -> dict[str, str]:
    answer = await session.post(f"/{provider}/_issue", data=dumps({"subject": "17", **issue}))
    assert answer.status == 200
    return loads(await answer.read())


async def asked(
    session: aiohttp.ClientSession, path: str, query: Mapping[str, str], form: Mapping[str, str] | None = None
) -> tuple[int, str, bytes]:
    answer = await session.request("GET" if form is None else "POST", path, params=query, data=form)
    return answer.status, answer.content_type, await answer.read()


@pytest.mark.parametrize("provider", [module.__name__.rpartition(".")[2] for module in SIGN_IN])
async def test_every_provider_issues_proofs_of_who_one_chooses_to_be(session: aiohttp.ClientSession, provider: str):
    first, second = await issued(session, provider), await issued(session, provider, app="other")

    assert first.keys() & {"code", "access_token", "id_token", "signature"}
    assert first != second


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        ({}, "subject is required"),
        ({"subject": ""}, "subject must not be empty"),
        ({"subject": "17", "fault": "earthquake"}, "fault must be one of"),
        ({"subject": "17", "profile": {"gender": "x"}}, "profile.gender must be"),
        ({"subject": "17", "aap": "other"}, "aap is not a field"),
        ([], "body must be an object"),
    ],
)
async def test_an_impossible_choice_is_reported(session: aiohttp.ClientSession, body: object, reported: str):
    answer = await session.post("/weibo/_issue", data=dumps(body))

    assert answer.status == 400
    assert reported in (await answer.json())["error"]["message"]


async def test_qq_wraps_its_answers_unless_asked_for_json(session: aiohttp.ClientSession):
    token = (await issued(session, "qq", app="100222222"))["access_token"]
    value = b'{"client_id":"100222222","openid":"17"}'

    assert await asked(session, "/qq/oauth2.0/me", {"access_token": token}) == (
        200,
        "text/html",
        b"callback( " + value + b" );\n",
    )
    query = {"access_token": token, "fmt": "json"}
    assert await asked(session, "/qq/oauth2.0/me", query) == (200, "text/html", value)
    status, _, body = await asked(session, "/qq/oauth2.0/me", {"access_token": "x", "fmt": "json"})
    assert (status, body[:20]) == (200, b'callback( {"error":1')


async def test_wechat_answers_in_plain_text(session: aiohttp.ClientSession):
    query = {"appid": "sandbox-app", "secret": "s", "grant_type": "authorization_code"}
    query["code"] = (await issued(session, "wechat"))["code"]

    status, kind, body = await asked(session, "/wechat/sns/oauth2/access_token", query)
    assert (status, kind, loads(body)["openid"]) == (200, "text/plain", "17")
    status, kind, body = await asked(session, "/wechat/sns/oauth2/access_token", query)
    assert (status, kind, loads(body)["errcode"]) == (200, "text/plain", 40163)


async def test_some_errors_of_weibo_have_the_status_200(session: aiohttp.ClientSession):
    token = (await issued(session, "weibo", age_s=7300))["access_token"]

    status, _, body = await asked(session, "/weibo/oauth2/get_token_info", {}, {"access_token": token})

    assert (status, loads(body)["error_code"]) == (200, 21327)


async def test_calls_to_jd_are_signed_with_the_secret_of_the_app(session: aiohttp.ClientSession):
    form = {"app_key": "sandbox-app", "app_secret": "s", "grant_type": "authorization_code"}
    form["code"] = (await issued(session, "jd"))["code"]
    token = loads((await asked(session, "/jd/oauth2/access_token", {}, form))[2])["access_token"]

    query = {
        "access_token": token,
        "app_key": "sandbox-app",
        "360buy_param_json": '{"openId":"17"}',
        "sign": "0" * 32,
    }
    status, _, body = await asked(session, "/jd/routerjson", query, {})

    assert (status, loads(body)["error_response"]["code"]) == (200, "12")


async def test_calls_to_alipay_are_signed(session: aiohttp.ClientSession):
    form = {"app_id": "sandbox-app", "method": "alipay.system.oauth.token", "sign": "AAAA", "sign_type": "RSA2"}

    status, _, body = await asked(session, "/alipay/gateway.do", {}, form)

    assert (status, loads(body)["error_response"]["sub_code"]) == (200, "isv.invalid-signature")
    assert loads(body)["sign"]
