"""Calls of an app's server, and the events that it receives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from app.work.event_delivery import deliver_events
from parley_client import ParleyClient, ParleyError, ServerClient, ServerKey, WebhookEvent, verify_webhook
from streams.tasks import background
from tests.clients.cases import SIGN_KEY
from tests.clients.conftest import AUTH, configure
from tests.clients.mails import code_sent
from tests.clients.python.conftest import PROMPT
from tests.clients.sandbox_server import module_server, testbed
from tests.running.servers import SERVER_KEY, Server
from tests.waiting import until

__all__ = ["module_server", "testbed"]

KEY = ServerKey("development", "HS256", SERVER_KEY)
SECRET = "whsec_c2FuZGJveC4uLi4uLi4uLi4uLi4uLi4u"


@pytest.fixture
async def backend(server: Server) -> AsyncIterator[ServerClient]:
    async with ServerClient(server.url, "default", KEY, backoff=PROMPT) as opened:
        yield opened


async def test_a_server_signs_in_a_user_for_the_client(backend: ServerClient, server: Server) -> None:
    signed_up = await backend.sign_up("name_password", {"name": "ada", "password": "correct horse battery"})
    user = await backend.sign_in("name_password", {"name": "ada", "password": "correct horse battery"})
    assert user["uid"] == signed_up["uid"]
    token = user.get("session", {}).get("session_token")
    async with ParleyClient(server.url, sign_key=SIGN_KEY, session=token) as client:
        assert (await client.user())["uid"] == user["uid"]


async def test_a_server_acts_for_a_user(backend: ServerClient, client: ParleyClient, server: Server) -> None:
    sandbox_url = server.services.settings.sandbox_url
    account = {"platform": "vendor_b_llm", "base_url": f"{sandbox_url}/openai/v1", "api_key": "sandbox"}
    await configure(server, "vendor_accounts", account, name="chat")
    await configure(server, "conversation", {"chat": {"account": "chat", "model": "gpt-4o-mini"}}, name="one")
    uid = (await client.user())["uid"]
    user = backend.user(uid)
    assert (await user.user())["uid"] == uid
    turn = user.converse(strategies=["one"], text="Hello there", language_code="en-US")
    await turn.finish()
    await turn.interrupt()
    assert (await user.history(turn.conversation_id or ""))["conversation"]["record_count"] == 1
    await user.leaderboards.upload("weekly", 3)
    assert (await client.leaderboards.query("weekly"))["self_rank"] == 1
    await user.record_activity()
    assert await backend.profiles([uid, "0" * 32]) == {uid: []}
    with pytest.raises(ParleyError) as unknown:
        await backend.user("0" * 32).assets()
    assert (unknown.value.error_type, unknown.value.status) == ("item_not_found", 404)


async def test_a_server_begins_payments_and_withdrawals(
    backend: ServerClient, client: ParleyClient, server: Server
) -> None:
    await client.account.send_email_code("ada@example.com", platform="website")
    code = await code_sent(server, "ada@example.com")
    payee = await client.sign_in("email_code", {"email": "ada@example.com", "verify_code": code})
    user = backend.user(payee["uid"])
    intent = await user.create_payment_intent(199, "usd", email="ada@example.com")
    assert (intent["amount"], intent["status"]) == (199, "requires_payment_method")
    read, assets = await user.payment_intent(intent["id"])
    assert (read["id"], assets) == (intent["id"], [])
    begun = await user.withdraw("w-1", 12.3, start_time=datetime(2026, 1, 1, tzinfo=UTC))
    assert (begun["status"], begun["cash_num"]) == ("WITHDRAW_START", 12.3)
    assert (await user.withdrawal("w-1"))["withdraw_id"] == begun["withdraw_id"]


async def test_a_key_pair_is_accepted_and_another_key_refused(server: Server, client: ParleyClient) -> None:
    private = ed25519.Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    key = {"kid": "pair", "alg": "EdDSA", "public_key": public}
    await configure(server, "auth", AUTH | {"server_keys": [key]})
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    uid = (await client.user())["uid"]
    async with ServerClient(server.url, "default", ServerKey("pair", "EdDSA", pem)) as backend:
        assert (await backend.user(uid).user())["uid"] == uid
    async with ServerClient(server.url, "default", KEY) as backend:
        with pytest.raises(ParleyError) as refused:
            await backend.user(uid).user()
    assert (refused.value.error_type, refused.value.status) == ("auth_failed", 401)
    assert SERVER_KEY not in repr(KEY)


@asynccontextmanager
async def sink(received: list[WebhookEvent]) -> AsyncIterator[str]:
    """A webhook of an app that keeps what it verifies."""

    async def receive(request: web.Request) -> web.Response:
        received.append(verify_webhook(request.headers, await request.read(), SECRET))
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/parley", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/parley"
    finally:
        await runner.cleanup()


async def test_events_of_the_server_are_verified(server: Server, backend: ServerClient) -> None:
    received: list[WebhookEvent] = []
    async with sink(received) as url:
        await configure(server, "events", {"url": url, "secret": SECRET, "events": ["account"]}, name="mine")
        user = await backend.sign_in("device", {"id": "a new device"})
        async with background(deliver_events(server.services, poll_s=0.05)):
            await until(lambda: received)
    assert (received[0]["event"], received[0]["data"]["change"]) == ("account", "sign_up")
    assert received[0]["data"]["user_id"] == user["uid"]
