"""If a transport is closed at any await of a call to a vendor, it fails as such, and the next one succeeds."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from pydantic import SecretStr

from tests.app.mail.smtp_servers import SmtpServer
from tests.closed_transports import ClosingTransports, closing_transports
from tests.peers.certificates import Authority
from tests.peers.tls_proxy import tls_proxy
from tests.vendors.http.upstream import Upstream, streaming
from tests.vendors.speech.azure.clients import recognizer, transcribe
from tests.vendors.speech.azure.service import Service, buffered, playing
from vendors.account import Account
from vendors.errors import Unreachable, VendorError
from vendors.http.client import open_vendor_http
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.transport import VendorHttp
from vendors.mail.smtp import MaybeAccepted, SmtpClient, SmtpOptions
from vendors.protocols import Transcript

LARGE = bytes(300_000)


@pytest.fixture
async def closing() -> AsyncIterator[ClosingTransports]:
    async with closing_transports() as watching:
        yield watching


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def pieces() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield b"piece"
        await asyncio.sleep(0)


async def call(vendor_http: VendorHttp, *calls: Outgoing) -> None:
    for outgoing in calls:
        async with vendor_http.stream(outgoing) as response:
            assert b"".join([piece async for piece in response.pieces()]) == b"onetwo"
            await response.drain()


async def test_http(closing: ClosingTransports, upstream: Upstream) -> None:
    upstream.respond_with(streaming([b"one", b"two"]))
    async with open_vendor_http() as vendor_http:
        # Each run needs its own pieces.
        async def command() -> None:
            safe = Outgoing("acme", upstream.url, method="POST", body=LARGE, repeat=Repeat.SAFE)
            await call(vendor_http, safe, Outgoing("acme", upstream.url, method="POST", body=pieces()))

        assert await closing.check(command, error=VendorError, healed=command)


async def test_https(closing: ClosingTransports, upstream: Upstream, authority: Authority) -> None:
    upstream.respond_with(streaming([b"one", b"two"]))
    trusted = ssl.create_default_context(cafile=authority.path)
    connect = partial(asyncio.open_connection, "127.0.0.1", urlsplit(upstream.url).port)
    async with (
        tls_proxy(authority.server("localhost"), connect) as port,
        open_vendor_http(tls=trusted) as vendor_http,
    ):
        command = partial(
            call, vendor_http, Outgoing("acme", f"https://localhost:{port}", method="POST", body=LARGE)
        )
        assert await closing.check(command, error=VendorError)


async def repeating(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        for _ in range(2):
            await socket.send_str(message.data)
    return socket


async def test_websocket(closing: ClosingTransports, upstream: Upstream) -> None:
    upstream.respond_with(repeating)

    async def talk(vendor_http: VendorHttp) -> None:
        async with vendor_http.websocket(Outgoing("acme", upstream.url)) as socket:
            await socket.send("a")
            messages = socket.messages()
            async for _ in messages:
                break
            await socket.send("b" * 100_000)
            async for _ in messages:
                break
            await messages.aclose()

    async with open_vendor_http() as vendor_http:
        command = partial(talk, vendor_http)
        assert await closing.check(command, error=VendorError, healed=command)


async def test_recognition(closing: ClosingTransports, upstream: Upstream) -> None:
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(8)
        await service.phrase("One.")
        await service.say("turn.end")

    upstream.respond_with(playing(play))
    async with open_vendor_http() as vendor_http:
        client = recognizer(vendor_http, upstream.url)

        async def hear() -> None:
            assert (await transcribe(client, buffered(b"abcdefgh")))[-1] == Transcript("One.", final=True)

        assert await closing.check(hear, error=VendorError, healed=hear)


@pytest.mark.parametrize("checks", [False, True], ids=["send", "check"])
@pytest.mark.parametrize(("tls", "username"), [("starttls", ""), ("implicit", "news")])
async def test_lost_connection_to_a_mail_server_is_not_its_refusal(
    closing: ClosingTransports,
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    tls: Literal["starttls", "implicit"],
    username: str,
    *,
    checks: bool,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.com", "b@example.com", "News"
    server, identity = SmtpServer(), authority.server("localhost")
    async with server.listening(**{"starttls" if tls == "starttls" else "implicit_tls": identity}):
        url = f"smtp://localhost:{server.port}"
        account = Account(name="mail", api_key=SecretStr("secret"), base_url=url, platform="smtp")
        client = SmtpClient(None, account, SmtpOptions(tls, username, "me.example.com"))

        failures: list[VendorError] = []

        async def use() -> None:
            try:
                await (
                    client.check() if checks else client.send(message, sender="a@example.com", to="b@example.com")
                )
            except VendorError as error:
                failures.append(error)
                raise

        assert await closing.check(use, error=VendorError)
        await use()
    assert all(isinstance(error, Unreachable | MaybeAccepted) and error.retryable for error in failures)
