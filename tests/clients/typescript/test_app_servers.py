"""App servers with the TypeScript client: server tokens of each algorithm, and calls for a user."""

import secrets
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.clients.typescript.conftest import Configure
from tests.clients.typescript.program import Program
from tests.peers.rsa_keys import rsa_key
from tests.running.servers import Server

SECRET = "hs-" + secrets.token_hex(32)
KEYS: dict[str, Any] = {
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "RS256": rsa_key(),
}


def public_pem(key: Any) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def private_pem(key: Any) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


OWN_KEYS = [
    {"kid": "one", "alg": "HS256", "key": SECRET},
    *({"kid": "one", "alg": alg, "key": private_pem(key)} for alg, key in KEYS.items()),
]


@pytest.mark.parametrize("key", OWN_KEYS, ids=[key["alg"] for key in OWN_KEYS])
async def test_an_app_server_acts_for_a_user(
    program: Program, server: Server, configure: Configure, strategy: Configure, key: dict[str, Any]
) -> None:
    alg = key["alg"]
    registered = {"secret": SECRET} if alg == "HS256" else {"public_key": public_pem(KEYS[alg])}
    await configure("auth", "default", {"server_keys": [{"kid": "one", "alg": alg, **registered}]})
    await strategy("hello", "say:Hello")
    await program.do("appServer", name="server", url=server.url, key=key, user="unknown")
    uid = (await program.call("signIn", "device", {"id": "phone"}, client="server"))["uid"]
    await program.do("appServer", name="server", url=server.url, key=key, user=uid)
    assert (await program.call("user"))["uid"] == uid
    turn = await program.read(options={"strategies": ["hello"], "text": "Hi", "languageCode": "en-US"}).ended()
    assert turn["text"] == "Hello"
    await program.call("recordActivity")
    assert await program.call("assets") == []
    assert (await program.call("conversations"))["conversations"][0]["conversation_id"] == turn["conversationId"]
    assert await program.call("profiles", [uid], client="server") == {uid: []}
    assert [one["current"] for one in await program.call("account.sessions")] == [False]
