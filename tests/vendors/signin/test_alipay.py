"""Signatures of Alipay: what is signed, what is accepted, and which keys a config must have."""

from base64 import b64encode
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from pydantic import SecretStr

from streams.wire.errors import ConfigInvalid
from tests.vendors.http.upstream import Upstream, plain
from tests.vendors.signin.providers import BY_NAME, NOW
from vendors.errors import Garbled
from vendors.http.transport import VendorHttp
from vendors.sandbox.server import Running
from vendors.sandbox.signin.alipay_keys import PLATFORM_KEY
from vendors.signin.protocols import Proof, VerifiedIdentity

ROW = BY_NAME["alipay"]
NAME = b"alipay_system_oauth_token_response"
GOOD = rb'{"user_id":"2088","note":"a}\"{\\","access_token":"auth\/1", "expires_in":"60"}'
EVIL = b'{"user_id":"6666","access_token":"auth1"}'


def signature(covered: bytes) -> bytes:
    return b64encode(PLATFORM_KEY.sign(covered, PKCS1v15(), SHA256()))


def body(covered: bytes, sign: bytes) -> bytes:
    return b'{"%b": %b,"sign":"%b"}' % (NAME, covered, sign)


async def verified(http: VendorHttp, upstream: Upstream, raw: bytes) -> VerifiedIdentity:
    upstream.respond_with(plain(200, raw))
    return await ROW.client_at(http, upstream.url).verify(Proof(code="c-1"), now=NOW)


async def test_the_signature_covers_the_bytes_as_they_were_sent(http: VendorHttp, upstream: Upstream):
    found = await verified(http, upstream, body(GOOD, signature(GOOD)))

    assert (found.social_id, found.access_token) == ("2088", "auth/1")


FORGERIES: dict[str, Callable[[], bytes]] = {
    "changed": lambda: body(EVIL, signature(GOOD)),
    "unsigned": lambda: b'{"%b":%b}' % (NAME, GOOD),
    "empty signature": lambda: body(GOOD, b""),
    "no base64": lambda: body(GOOD, b"!!!"),
    "serialized again": lambda: body(GOOD.replace(b"\\/", b"/"), signature(GOOD)),
    "named twice": lambda: b'{"%b":%b,"%b":%b,"sign":"%b"}' % (NAME, EVIL, NAME, GOOD, signature(GOOD)),
    "of another method": lambda: body(GOOD, signature(GOOD)).replace(b"oauth_token", b"oauth_other"),
    "in a text": lambda: b'{"x":"%b","sign":"%b"}' % (GOOD.replace(b'"', b'\\"'), signature(GOOD)),
    "a list": lambda: body(b"[%b]" % GOOD, signature(GOOD)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_forged_answers_are_not_accepted(http: VendorHttp, upstream: Upstream, forgery: str):
    with pytest.raises(Garbled):
        await verified(http, upstream, FORGERIES[forgery]())


async def test_only_the_signed_object_is_read(http: VendorHttp, upstream: Upstream):
    """JSON parsers take the last of two objects with one name. The signature is that of the first."""
    raw = b'{"%b":%b,"%b":%b,"sign":"%b"}' % (NAME, GOOD, NAME, EVIL, signature(GOOD))

    assert (await verified(http, upstream, raw)).social_id == "2088"


async def test_new_apps_get_an_open_id(http: VendorHttp, upstream: Upstream):
    covered = b'{"open_id":"074a1CcTG1Le","access_token":"t"}'

    assert (await verified(http, upstream, body(covered, signature(covered)))).social_id == "074a1CcTG1Le"


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


async def test_calls_with_a_key_that_alipay_does_not_know_are_a_fault_of_the_config(
    http: VendorHttp, sandbox: Running
):
    other = pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))
    client = ROW.client(http, sandbox, private_key=SecretStr(other))

    with pytest.raises(ConfigInvalid, match="invalid-signature"):
        await client.verify(await ROW.proof(sandbox), now=NOW)


async def test_keys_must_be_rsa_keys_in_pem_format(http: VendorHttp, sandbox: Running):
    curve = ec.generate_private_key(ec.SECP256R1())
    public = curve.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    for private_key in ("", "MIIEvQ", pem(curve)):
        with pytest.raises(ConfigInvalid, match="private_key must be"):
            ROW.client(http, sandbox, private_key=SecretStr(private_key))
    for public_key in ("", "MIIBIj", public):
        with pytest.raises(ConfigInvalid, match="public_key must be"):
            ROW.client(http, sandbox, public_key=public_key)
