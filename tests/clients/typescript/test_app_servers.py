"""App servers with the TypeScript client: server tokens, calls for a user, and webhooks."""

import secrets
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from standardwebhooks import Webhook

from streams.wire.codec import dumps
from tests.calendar.clock import utc_now
from tests.clients.typescript.conftest import Configure
from tests.clients.typescript.program import ClientError, Program
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
    {"kid": "one", "alg": "HS256", "secret": SECRET},
    *({"kid": "one", "alg": alg, "privateKey": private_pem(key)} for alg, key in KEYS.items()),
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
    with pytest.raises(ClientError, match="an app server cannot call"):
        await program.call("account.emailExists", "ada@example.com")


async def test_a_webhook_is_verified(program: Program) -> None:
    old, new = (f"whsec_{secrets.token_hex(16)}" for _ in range(2))
    body = dumps({"event": "account", "id": "e-1", "app_id": "default", "time": "…", "data": {"change": "sign_up"}})

    def headers(secret: str, *, age_s: int = 0) -> dict[str, str]:
        sent_at = utc_now() - timedelta(seconds=age_s)
        signature = Webhook(secret).sign("e-1", sent_at, body.decode())
        timestamp = str(int(sent_at.timestamp()))
        return {"Webhook-Id": "e-1", "webhook-timestamp": timestamp, "webhook-signature": f"v1,AAAA {signature}"}

    async def verify(given: dict[str, str], text: str, *used: str) -> Any:
        return await program.do("webhook", headers=given, body=text, secrets=used)

    seen = await verify(headers(new), body.decode(), old, new)
    assert seen["data"] == {"change": "sign_up"}
    for given, text, used, why in [
        (headers(new), body.decode(), old, "webhook-signature is missing or wrong"),
        (headers(new), body.decode().replace("sign_up", "linked"), new, "webhook-signature is missing or wrong"),
        (headers(new, age_s=400), body.decode(), new, "too far from the time"),
        ({}, body.decode(), new, "webhook-timestamp is missing"),
    ]:
        with pytest.raises(ClientError, match=why) as refused:
            await verify(given, text, used)
        assert refused.value.error["name"] == "WebhookRefused"
