"""The sandbox's sign-in providers: how proofs are issued, and the peculiarities of each protocol."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import aiohttp
import jwt
import pytest
from pydantic import SecretStr

from streams.wire.codec import dumps, loads
from tests.calendar.clock import epoch_s, utc_now
from vendors.sandbox.server import SIGN_IN, Running
from vendors.sandbox.signin.alipay_keys import APP_PRIVATE_KEY
from vendors.sandbox.signin.apple import APP_PRIVATE_KEY as APPLE_KEY
from vendors.sandbox.signin.apple import KEY_ID, TEAM_ID
from vendors.sandbox.signin.grants import REDIRECT_URI, SECRET
from vendors.signin import alipay_keys, jd
from vendors.signin.protocols import SignInApp

BEIJING = timezone(timedelta(hours=8))


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
    query = {"appid": "sandbox-app", "secret": SECRET, "grant_type": "authorization_code"}
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
    form = {"app_key": "sandbox-app", "app_secret": SECRET, "grant_type": "authorization_code"}
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


def written(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")


def times() -> list[tuple[str, bool]]:
    """Times of calls, and whether they are accepted."""
    now = utc_now().astimezone(BEIJING)
    wrong = [written(utc_now()), written(now - timedelta(minutes=11)), written(now + timedelta(minutes=11))]
    return [
        (written(now), True),
        (written(now - timedelta(minutes=9)), True),
        *((at, False) for at in [*wrong, ""]),
    ]


async def test_jd_checks_the_method_the_version_and_the_time_of_a_call(session: aiohttp.ClientSession):
    form = {"app_key": "sandbox-app", "app_secret": SECRET, "grant_type": "authorization_code"}
    form["code"] = (await issued(session, "jd"))["code"]
    token = loads((await asked(session, "/jd/oauth2/access_token", {}, form))[2])["access_token"]

    async def accepted(**fields: str) -> bool:
        query = {
            "method": "jingdong.user.getUserInfoByOpenId",
            "app_key": "sandbox-app",
            "access_token": token,
            "timestamp": written(utc_now().astimezone(BEIJING)),
            "v": "2.0",
            "360buy_param_json": '{"openId":"17"}',
            **fields,
        }
        query["sign"] = jd.signature(SECRET, query)
        return "error_response" not in loads((await asked(session, "/jd/routerjson", query, {}))[2])

    assert [await accepted(timestamp=at) for at, _ in times()] == [good for _, good in times()]
    assert not await accepted(method="jingdong.user.getEverything")
    assert not await accepted(v="9")


async def test_alipay_checks_the_version_and_the_time_of_a_call(session: aiohttp.ClientSession):
    key = alipay_keys.private_key(SignInApp("payment_wallet_a", private_key=SecretStr(APP_PRIVATE_KEY)))

    async def accepted(**fields: str) -> bool:
        form = {
            "app_id": "sandbox-app",
            "method": "alipay.system.oauth.token",
            "format": "JSON",
            "charset": "utf-8",
            "sign_type": "RSA2",
            "timestamp": written(utc_now().astimezone(BEIJING)),
            "version": "1.0",
            "grant_type": "authorization_code",
            "code": (await issued(session, "alipay"))["code"],
            **fields,
        }
        form["sign"] = alipay_keys.signature(key, form)
        return "error_response" not in loads((await asked(session, "/alipay/gateway.do", {}, form))[2])

    assert [await accepted(timestamp=at) for at, _ in times()] == [good for _, good in times()]
    assert not await accepted(version="7")


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("instagram", "/instagram/oauth/access_token"),
        ("taobao", "/taobao/token"),
        ("amazon", "/amazon/auth/o2/token"),
    ],
)
@pytest.mark.parametrize(
    "wrong", [{}, {"client_secret": "sandbox-app"}, {"client_secret": ""}, {"redirect_uri": "x"}], ids=str
)
async def test_codes_are_redeemed_with_the_secret_and_the_address_of_the_app(
    session: aiohttp.ClientSession, provider: str, path: str, wrong: dict[str, str]
):
    form = {
        "client_id": "sandbox-app",
        "client_secret": SECRET,
        "redirect_uri": REDIRECT_URI,
        "grant_type": "authorization_code",
        "code": (await issued(session, provider))["code"],
        **wrong,
    }

    status, _, body = await asked(session, path, {}, form)

    assert ("access_token" in loads(body)) is (not wrong)
    assert (status == 200) is (not wrong)


async def test_facebook_and_wechat_report_what_they_are_asked_for(session: aiohttp.ClientSession):
    token = (await issued(session, "facebook"))["access_token"]
    proof = hmac.new(SECRET.encode(), token.encode(), hashlib.sha256).hexdigest()
    query = {"access_token": token, "appsecret_proof": proof}
    for fields, names in (({}, {"id", "name"}), ({"fields": "id,picture.type(large)"}, {"id", "picture"})):
        assert loads((await asked(session, "/facebook/v22.0/me", {**query, **fields}))[2]).keys() == names

    query = {"appid": "sandbox-app", "secret": SECRET, "grant_type": "authorization_code"}
    query["code"] = (await issued(session, "wechat"))["code"]
    token = loads((await asked(session, "/wechat/sns/oauth2/access_token", query))[2])["access_token"]
    query = {"access_token": token, "openid": "17"}
    for language, city in (({}, ""), ({"lang": "zh_CN"}, "朝阳区")):
        assert loads((await asked(session, "/wechat/sns/userinfo", {**query, **language}))[2])["city"] == city


async def test_apple_knows_two_kinds_of_tokens_to_revoke(session: aiohttp.ClientSession):
    now = int(epoch_s())
    claims = {"iss": TEAM_ID, "iat": now, "exp": now + 600, "aud": "https://appleid.apple.com", "sub": "app"}
    secret = jwt.encode(claims, APPLE_KEY, "ES256", headers={"kid": KEY_ID})
    for hint, status in (("refresh_token", 200), ("access_token", 200), ("nonsense", 400)):
        form = {"client_id": "app", "client_secret": secret, "token": "t", "token_type_hint": hint}
        assert (await asked(session, "/apple/auth/revoke", {}, form))[0] == status
