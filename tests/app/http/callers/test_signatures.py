"""`X-Service-Sign` over real HTTP."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from app.http.callers.signatures import parse
from app.http.callers.tokens import sign_header
from storage.operators.audit import COMMAND
from tests.calendar.clock import epoch_s
from tests.running.config_stores import store_unchecked
from tests.running.servers import Server

OLD, NEW = "k-old-" + "o" * 32, "k-new-" + "n" * 32
PATH = "/bp/user/login"
BODY = b'{"device": {"id": "phone-1"}}'
NONCE = "nonce-0123456789"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
async def signed(server):
    """The server, with signatures required of app `default`."""
    await configure(server, keys=[OLD])
    return server


async def configure(server, *, keys: list[str], **more):
    sign_keys = [{"id": key[:5], "key": key} for key in keys]
    value = {"require_sign": True, "sign_keys": sign_keys, **more}
    await server.services.configs.put("default", "auth", "default", value, author="tests", origin=COMMAND)


async def send(server, header: str | None, *, path: str = PATH, body: bytes = BODY) -> tuple[int, str]:
    headers = {} if header is None else {"X-Service-Sign": header}
    url = URL(server.url + path, encoded=True)
    async with server.http.post(url, data=body, headers=headers) as response:
        reply = await response.json()
        return response.status, reply.get("error", {}).get("message", "")


def sign(key: str = OLD, *, path: str = PATH, body: bytes = BODY, method: str = "POST", **more) -> str:
    return sign_header(key, method=method, path_and_query=path, body=body, **more)


REFUSED = (401, "auth_failed: X-Service-Sign is missing or wrong")


async def test_a_valid_signature_is_accepted_with_and_without_a_nonce(signed):
    assert await send(signed, sign()) == (200, "")
    assert await send(signed, sign(nonce=NONCE)) == (200, "")


def bad_headers() -> dict[str, str | None]:
    return {
        "none": None,
        "empty": "",
        "not-hex": "v1=abc",
        "unknown-key": sign(NEW),
        "another-path": sign(path="/bp/user/logout"),
        "another-query": sign(path=PATH + "?a=1"),
        "another-method": sign(method="GET"),
        "another-body": sign(body=BODY + b" "),
        "nonce-added": sign().replace(",v1=", f",n={NONCE},v1="),
        "nonce-taken-away": sign(nonce=NONCE).replace(f"n={NONCE},", ""),
        "short-nonce": sign(nonce="too-short"),
        "long-nonce": sign(nonce="n" * 65),
        "two-times": sign() + "," + sign(),
        "too-many-signatures": ",".join([sign(), *[f"v1={'0' * 64}"] * 8]),
        "upper-case": sign().upper(),
        "digits-of-another-script": "t=١٢٣٤,v1=" + "0" * 64,
    }


async def test_a_wrong_signature_is_refused_without_a_reason(signed):
    answers = {name: await send(signed, header) for name, header in bad_headers().items()}
    assert answers == dict.fromkeys(answers, REFUSED)


async def test_timestamps_may_be_off_by_five_minutes(signed):
    for off_s in (-295, 295):
        assert (await send(signed, sign(t=int(epoch_s()) + off_s)))[0] == 200
    for off_s in (-306, 306, -86_400):
        assert await send(signed, sign(t=int(epoch_s()) + off_s)) == REFUSED


async def test_a_nonce_is_accepted_once(signed):
    header = sign(nonce=NONCE)
    assert (await send(signed, header))[0] == 200
    assert await send(signed, header) == REFUSED
    assert await send(signed, sign(nonce=NONCE, t=int(epoch_s()) + 1)) == REFUSED


async def test_a_wrong_signature_does_not_use_up_a_nonce(signed):
    assert await send(signed, sign(NEW, nonce=NONCE)) == REFUSED
    assert (await send(signed, sign(nonce=NONCE)))[0] == 200


async def test_a_nonce_can_be_required(signed):
    await configure(signed, keys=[OLD], require_nonce=True)
    assert await send(signed, sign()) == REFUSED
    assert (await send(signed, sign(nonce=NONCE)))[0] == 200


async def test_one_key_can_replace_another_without_a_break(signed):
    both = sign(OLD) + "," + sign(NEW).partition(",")[2]
    assert (await send(signed, both))[0] == 200
    await configure(signed, keys=[OLD, NEW])
    for header in (sign(OLD), sign(NEW), both):
        assert (await send(signed, header))[0] == 200
    await configure(signed, keys=[NEW])
    assert await send(signed, sign(OLD)) == REFUSED
    assert (await send(signed, both))[0] == 200


async def test_path_and_query_are_signed_as_sent(signed):
    path = PATH + "?b=%C3%A9&a=%41+x"
    assert (await send(signed, sign(path=path), path=path))[0] == 200
    assert await send(signed, sign(path=PATH + "?b=é&a=A+x"), path=path) == REFUSED


async def test_required_signatures_without_a_key_are_a_fault_of_the_config(signed):
    await configure(signed, keys=[])
    status, message = await send(signed, sign())
    assert status == 422
    assert message.startswith("config_invalid: auth default: sign_keys")


async def test_nobody_signs_with_an_empty_key_that_is_stored(server):
    for keys in ([""], ["", OLD]):
        value = {"sign_keys": [{"id": f"k{n}", "key": key} for n, key in enumerate(keys)]}
        await store_unchecked(server.services, "auth", "default", value)
        assert await send(server, sign("")) == REFUSED
    assert (await send(server, sign(OLD)))[0] == 200


async def test_signatures_are_optional_unless_the_app_requires_them(server):
    assert (await send(server, None))[0] == 200


async def test_fields_are_checked_after_the_signature(signed):
    body = b'{"device": 5}'
    assert await send(signed, None, body=body) == REFUSED
    assert (await send(signed, None, body=b"{"))[1].startswith("invalid_parameter: body is not valid JSON")
    assert (await send(signed, sign(body=body), body=body))[1] == "invalid_parameter: device must be an object"


@given(st.text(max_size=200))
def test_any_header_is_parsed_or_refused(header: str):
    signature = parse(header)
    assert signature is None or (1 <= len(signature.v1) <= 8 and signature.t >= 0)


@given(
    st.integers(0, 10**12 - 1),
    st.none() | st.text(alphabet="azAZ09_-", min_size=16, max_size=64),
    st.binary(max_size=50),
    st.text(max_size=50),
)
def test_signed_fields_are_verified(t, nonce, body, path):
    header = sign_header(OLD, method="PUT", path_and_query=path, body=body, t=t, nonce=nonce)
    signature = parse(header)
    assert signature is not None
    assert (signature.t, signature.nonce) == (t, nonce)
    assert signature.proves([NEW, OLD], method="PUT", path_and_query=path, body=body)
    assert not signature.proves([NEW], method="PUT", path_and_query=path, body=body)
    assert not signature.proves([OLD], method="PUT", path_and_query=path, body=body + b".")
    assert not replace(signature, t=t + 1).proves([OLD], method="PUT", path_and_query=path, body=body)
