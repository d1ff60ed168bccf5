"""Answers of sign-in providers that the sandbox does not send: variants, tokens of others, and hostile text."""

import traceback
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from streams.wire.codec import dumps
from streams.wire.errors import ServiceError
from tests.vendors.http.upstream import Respond, Upstream, plain
from tests.vendors.signin.providers import BY_NAME, NOW, SECRET
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.signin.protocols import Proof, ProofRefused, SignIn, VerifiedIdentity

PROOF = Proof(code="code-4f1b7d20c9", access_token="token-9a3e51f06b", open_id="o-1")
HOSTILE = "Mei\r\n\0 <b>Lin</b>"


def client(http: VendorHttp, upstream: Upstream, name: str, **config: Any) -> SignIn:
    return BY_NAME[name].client_at(http, upstream.url, **config)


def answers(*values: Any) -> tuple[Respond, ...]:
    return tuple(plain(200, value if isinstance(value, bytes) else dumps(value)) for value in values)


async def verified(
    http: VendorHttp, upstream: Upstream, name: str, *values: Any, proof: Proof = PROOF, **config: Any
) -> VerifiedIdentity:
    upstream.respond_with(*answers(*values))
    return await client(http, upstream, name, **config).verify(proof, now=NOW)


async def refusal(http: VendorHttp, upstream: Upstream, name: str, *responses: Respond) -> ServiceError:
    upstream.respond_with(*responses)
    with pytest.raises(ServiceError) as raised:
        await client(http, upstream, name).verify(PROOF, now=NOW)
    return raised.value


APPS = {
    "amazon": ({"access_token": "t"}, {"aud": "sandbox-app", "user_id": "u"}, "aud"),
    "kakao": (None, {"app_id": 314159, "id": 7}, "app_id"),
    "line": (None, {"client_id": "sandbox-app", "expires_in": 1}, "client_id"),
    "qq": (None, {"client_id": "sandbox-app", "openid": "o-1"}, "client_id"),
    "weibo": (None, {"appkey": "sandbox-app", "uid": 7}, "appkey"),
}


@pytest.mark.parametrize("name", APPS)
async def test_only_tokens_of_our_apps_are_accepted(http: VendorHttp, upstream: Upstream, name: str):
    first, info, field = APPS[name]
    before = [first] if first else []
    after = [{"userId": "u"}] if name == "line" else []

    assert (await verified(http, upstream, name, *before, info, *after)).social_id
    for other in ("other-app", "sandbox-app ", "SANDBOX-APP", 0, 314159.0, None, "", True, [info[field]], {}):
        upstream.seen.clear()
        with pytest.raises((ProofRefused, Garbled)):
            await verified(http, upstream, name, *before, {**info, field: other})
        # The person's data is not asked for before the app is known.
        assert len(upstream.seen) == len(before) + 1


async def test_errors_of_another_app_name_it_for_the_trace(http: VendorHttp, upstream: Upstream):
    error = await refusal(http, upstream, "weibo", *answers({"appkey": "other-app", "uid": 7}))

    assert isinstance(error, ProofRefused)
    assert (error.seen, error.allowed) == ("other-app", ["first-app", "sandbox-app"])


def repeating(status: int, sent: list[str], *, place: str) -> Respond:
    """Return an error response that repeats a value of its request. `sent` gets the values that are secrets."""

    async def answer(request: web.Request) -> web.StreamResponse:
        form = parse_qs((await request.read()).decode())
        values = [*request.query.values(), *(value for values in form.values() for value in values)]
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        sent[:] = [value for value in (*values, bearer) if value in {PROOF.code, PROOF.access_token, SECRET}]
        text = {"code": sent[-1], "message": f"bad {sent[-1]}", "both": " ".join(sent)}[place]
        names = ("error", "error_type", "error_code", "errcode", "code", "sub_code", "message", "errmsg", "ret")
        error = dict.fromkeys(names, text)
        body = {**error, "error_response": error}
        return web.Response(status=status, body=dumps(body), content_type="application/json")

    return answer


@pytest.mark.parametrize("name", sorted(BY_NAME))
async def test_what_a_provider_repeats_of_a_call_is_in_no_error(http: VendorHttp, upstream: Upstream, name: str):
    for status in (200, 400, 401, 500):
        for place in ("code", "message", "both"):
            sent: list[str] = []
            error = await refusal(http, upstream, name, repeating(status, sent, place=place))
            reported = f"{error} {error.extra} {''.join(traceback.format_exception(error))}"
            assert sent
            assert [secret for secret in sent if secret in reported] == []


@pytest.mark.parametrize("name", sorted(BY_NAME))
async def test_an_error_page_is_a_fault_of_the_provider(http: VendorHttp, upstream: Upstream, name: str):
    bodies = (b"<html>Bad gateway</html>", b"", b"null", b"[]", b"7", '{"a": "\u7528"}'.encode("gbk"))
    pages = [(status, body) for status in (200, 400, 403, 404) for body in bodies]
    for status, body in [*pages, *((status, bodies[0]) for status in (301, 307, 408, 429, 502))]:
        page = plain(status, body, Content_Type="text/html", Location="http://127.0.0.1:9/")
        assert isinstance(await refusal(http, upstream, name, page), VendorError)


@pytest.mark.parametrize("status", [414, 431])
async def test_a_proof_that_is_too_long_for_the_provider_is_refused(
    http: VendorHttp, upstream: Upstream, status: int
):
    assert isinstance(await refusal(http, upstream, "kakao", plain(status, b"<html>Too long</html>")), ProofRefused)


async def test_the_time_to_wait_is_that_of_the_provider(http: VendorHttp, upstream: Upstream):
    error = await refusal(http, upstream, "taobao", plain(429, b"{}", Retry_After="7"))

    assert isinstance(error, Refused)
    assert (error.retry_after_s, error.retryable, error.vendor_status) == (7, True, 429)


@pytest.mark.parametrize(
    "value",
    [
        {"access_token": "IGQ", "user_id": 17841405822304914},
        {"access_token": "IGQ", "user_id": "17841405822304914", "permissions": ["instagram_business_basic"]},
        {"data": [{"access_token": "IGQ", "user_id": "17841405822304914", "permissions": "a,b"}]},
    ],
)
async def test_all_versions_of_instagram_are_read(http: VendorHttp, upstream: Upstream, value: dict[str, Any]):
    found = await verified(http, upstream, "instagram", value, proof=Proof(code="AQB-1#_"))

    assert (found.social_id, found.access_token) == ("17841405822304914", "IGQ")
    assert b"code=AQB-1&" in upstream.seen[0].body + b"&"


@pytest.mark.parametrize(
    "raw",
    [b"18446744073709551616", b"1e30", b"9007199254740993.0", b"true", b'""', b"null", b"[7]"],
)
async def test_what_cannot_be_an_exact_id_is_no_id(http: VendorHttp, upstream: Upstream, raw: bytes):
    with pytest.raises(Garbled, match="user_id"):
        await verified(http, upstream, "instagram", b'{"access_token":"IGQ","user_id":%b}' % raw)


@pytest.mark.parametrize("raw", [b'"a\\u0000b"', b'"a\\ud83d"', b'"a\xff"', b'"a\x01"', b'"%b"' % (b"a" * 257)])
async def test_an_id_that_cannot_be_read_is_a_fault_of_one_person(http: VendorHttp, upstream: Upstream, raw: bytes):
    with pytest.raises(ProofRefused, match="user_id that cannot be read"):
        await verified(http, upstream, "instagram", b'{"access_token":"IGQ","user_id":%b}' % raw)


@pytest.mark.parametrize("form", [b"%b", b"callback( %b );\n", b"callback(%b)", b"\r\n callback( %b ) ;"])
async def test_qq_is_read_with_and_without_callback(http: VendorHttp, upstream: Upstream, form: bytes):
    good, bad = b'{"client_id":"sandbox-app","openid":"o-1"}', b'{"error":100016,"error_description":"failed ); {"}'

    assert (await verified(http, upstream, "qq", form % good)).social_id == "o-1"
    with pytest.raises(ProofRefused, match="100016"):
        await verified(http, upstream, "qq", form % bad)


async def test_an_open_id_must_be_that_of_the_token(http: VendorHttp, upstream: Upstream):
    value = {"client_id": "sandbox-app", "openid": "o-1"}
    for open_id in ("o-2", ""):
        with pytest.raises(ProofRefused):
            await verified(http, upstream, "qq", value, proof=Proof(access_token="t", open_id=open_id))


async def test_qq_without_an_open_id_is_chat_network(http: VendorHttp, upstream: Upstream):
    value = {"client_id": "sandbox-app", "openid": "o-1"}

    found = await verified(http, upstream, "qq", value, proof=Proof(access_token="t"), platform="chat_network")

    assert found.social_id == "o-1"


@pytest.mark.parametrize("name", ["kakao", "line", "weibo", "instagram"])
async def test_only_qq_is_read_with_a_callback(http: VendorHttp, upstream: Upstream, name: str):
    with pytest.raises(Garbled):
        await verified(http, upstream, name, b'callback( {"id": 7} );')


WECHAT = {"access_token": "t", "openid": "o-1", "unionid": "u-1"}


@pytest.mark.parametrize("name", ["wechat", "wechat_mini"])
async def test_ids_of_wechat_are_those_of_the_app_unless_the_config_says_otherwise(
    http: VendorHttp, upstream: Upstream, name: str
):
    found = await verified(http, upstream, name, WECHAT)
    assert (found.social_id, found.openid) == ("o-1", "o-1")
    found = await verified(http, upstream, name, WECHAT, prefer_unionid=True)
    assert (found.social_id, found.openid) == ("u-1", "o-1")
    found = await verified(http, upstream, name, {**WECHAT, "unionid": ""}, prefer_unionid=True)
    assert (found.social_id, found.openid) == ("o-1", "o-1")


async def test_the_shared_id_of_previews_is_nobody(http: VendorHttp, upstream: Upstream):
    with pytest.raises(ProofRefused, match="temporary"):
        await verified(http, upstream, "wechat", {**WECHAT, "is_snapshotuser": 1})


async def test_a_session_key_is_kept_from_everybody(http: VendorHttp, upstream: Upstream):
    value = {"openid": "o-1", "session_key": "c2Vzc2lvbg=="}

    assert "c2Vzc2lvbg==" not in repr(await verified(http, upstream, "wechat_mini", value))


async def test_jd_without_an_open_id_has_its_uid(http: VendorHttp, upstream: Upstream):
    value = {"access_token": "t", "uid": "7060954021", "code": 0, "xid": "o*AASq"}

    found = await verified(http, upstream, "jd", value)

    assert (found.social_id, found.xid) == ("7060954021", "o*AASq")


async def test_new_apps_of_taobao_get_only_an_open_uid(http: VendorHttp, upstream: Upstream):
    value = {"access_token": "t", "taobao_open_uid": "AAE-1", "taobao_user_nick": "%E6%A2%85"}

    found = await verified(http, upstream, "taobao", value)

    assert found.social_id == "AAE-1"
    assert found.profile is not None
    assert found.profile.user_name == "梅"


PROFILES = {
    "instagram": {"username": HOSTILE, "profile_picture_url": "javascript:alert(1)"},
    "weibo": {"screen_name": HOSTILE, "avatar_hd": "data:text/html,x", "location": 7, "gender": ["m"]},
    "wechat": {"nickname": HOSTILE, "headimgurl": 'https://a.test/" onload="x', "sex": {}, "country": None},
    "kakao": {"kakao_account": {"profile": {"nickname": HOSTILE, "profile_image_url": 7}, "email": ["a"]}},
    "line": {"userId": "u", "displayName": HOSTILE, "pictureUrl": "//a.test/x"},
    "amazon": {"name": HOSTILE, "email": None},
}


@pytest.mark.parametrize("name", PROFILES)
async def test_texts_of_profiles_are_one_line_and_pictures_are_web_addresses(
    http: VendorHttp, upstream: Upstream, name: str
):
    upstream.respond_with(*answers(PROFILES[name]))

    found = await client(http, upstream, name).profile(VerifiedIdentity("7", openid="7", access_token="t"))

    assert found is not None
    assert (found.user_name, found.avatar, found.gender, found.email) == ("Mei <b>Lin</b>", "", 0, "")


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        ({"is_email_valid": True, "is_email_verified": True}, "mei@example.test"),
        ({"is_email_valid": False, "is_email_verified": True}, ""),
        ({"is_email_valid": True, "is_email_verified": False}, ""),
        ({"is_email_valid": 1, "is_email_verified": "true"}, ""),
        ({}, ""),
    ],
)
async def test_kakao_shows_an_address_only_if_it_is_verified(
    http: VendorHttp, upstream: Upstream, flags: dict[str, Any], shown: str
):
    upstream.respond_with(*answers({"kakao_account": {"email": "mei@example.test", **flags}}))

    found = await client(http, upstream, "kakao").profile(VerifiedIdentity("7", access_token="t"))

    assert found is not None
    assert found.email == shown


@pytest.mark.parametrize("name", ["amazon", "instagram", "line", "wechat", "weibo"])
async def test_addresses_that_no_provider_vouches_for_are_not_shown(
    http: VendorHttp, upstream: Upstream, name: str
):
    upstream.respond_with(*answers({"email": "victim@example.test", "email_verified": True, "ret": 0}))

    found = await client(http, upstream, name).profile(VerifiedIdentity("7", openid="7", access_token="t"))

    assert found is not None
    assert found.email == ""


async def test_long_texts_of_profiles_are_cut(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(
        *answers({"username": "n" * 10_000, "profile_picture_url": "https://a.test/" + "x" * 9_000})
    )

    found = await client(http, upstream, "instagram").profile(VerifiedIdentity("7", access_token="t"))

    assert found is not None
    assert (len(found.user_name), found.avatar) == (256, "")


@pytest.mark.parametrize(
    ("lifetime", "kept"), [(60, 60), ("60", 60), (0, 0), (-5, 0), ("x", 0), (True, 0), (1e18, 0)]
)
async def test_lifetimes_are_numbers_or_digits(http: VendorHttp, upstream: Upstream, lifetime: object, kept: int):
    found = await verified(http, upstream, "wechat", {**WECHAT, "expires_in": lifetime})

    assert found.expiration_date == (int(NOW.timestamp()) + kept if kept else 0)
