"""Configs of accounts that can never work are refused when they are written, as their fields say."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.app.operators import Operator
from tests.config_stores import store_unchecked
from tests.servers import Server

Key = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


@pytest.fixture
def operator(shared_server: Server) -> Operator:
    return Operator(shared_server)


def pem(key: Key) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


RSA = pem(rsa.generate_private_key(65537, 2048).public_key())
SHORT_RSA = pem(rsa.generate_private_key(65537, 1024).public_key())  # noqa: S505 - refused
P384 = pem(ec.generate_private_key(ec.SECP384R1()).public_key())
ED25519 = pem(ed25519.Ed25519PrivateKey.generate().public_key())


def server_key(alg: str, **fields: str) -> dict[str, Any]:
    return {
        "server_keys": [{"kid": "right", "alg": "HS256", "secret": "s" * 32}, {"kid": "k", "alg": alg, **fields}]
    }


AUTH = [
    ({"sign_keys": [{"id": "a", "key": ""}]}, "sign_keys[0].key must be at least 16 bytes"),
    ({"sign_keys": [{"id": "a", "key": "k" * 16}, {"id": "b", "key": "k" * 15}]},
     "sign_keys[1].key must be at least 16 bytes"),
    (server_key("HS256", secret="s" * 31), "server_keys[1].secret must be at least 32 bytes for HS256"),
    (server_key("HS256", public_key=RSA), "server_keys[1].secret must be at least 32 bytes for HS256"),
    (server_key("EdDSA"), "server_keys[1].public_key must be the PEM of a public key"),
    (server_key("EdDSA", public_key="no pem"), "server_keys[1].public_key must be the PEM of a public key"),
    (server_key("RS256", public_key=ED25519), "server_keys[1].public_key must be a key for RS256"),
    (server_key("RS256", public_key=SHORT_RSA), "server_keys[1].public_key must be a key for RS256"),
    (server_key("ES256", public_key=P384), "server_keys[1].public_key must be a key for ES256"),
]  # fmt: skip
REFUSED = [
    *(("auth/default", value, message) for value, message in AUTH),
]


@pytest.mark.parametrize(("path", "value", "message"), REFUSED)
async def test_what_can_never_work_is_refused_with_its_field(operator: Operator, path, value, message):
    before = (await operator("GET", f"configs/default/{path}")).body
    status, error = (await operator.put(f"configs/default/{path}", value)).error
    assert (status, error[: len(message) + 19]) == (400, f"invalid_parameter: {message}")
    assert (await operator("GET", f"configs/default/{path}")).body == before


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("auth/default", {"sign_keys": [{"id": "a", "key": "k" * 16}], **server_key("RS256", public_key=RSA)}),
        ("auth/default", server_key("EdDSA", public_key=ED25519)),
    ],
)
async def test_what_can_work_is_written_without_a_warning(operator: Operator, path, value):
    written = await operator.put(f"configs/default/{path}?strict=true", value)
    assert (written.status, written.body.get("warnings")) == (200, None)


async def test_faulty_configs_that_are_stored_remain_in_use_and_are_listed_with_warnings(operator: Operator):
    services = operator.server.services
    stored = {
        ("auth", "default"): {"require_sign": False, "sign_keys": [{"id": "a", "key": "short"}]},
    }
    for (kind, name), value in stored.items():
        await store_unchecked(services, kind, name, value)
    await services.configs.refresh()
    rows = {
        (row["kind"], row["name"]): row for row in (await operator("GET", "configs?app=default")).body["configs"]
    }
    faults = {key: [warning["path"] for warning in rows[key]["warnings"]] for key in stored}
    assert faults == {
        ("auth", "default"): ["sign_keys[0].key"],
    }
    assert not any("fault" in rows[key] for key in stored)
    await operator.server.login()
