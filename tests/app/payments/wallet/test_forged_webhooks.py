"""Webhooks that somebody forges cost few calls to the platform, and delay no payment."""

import asyncio
import time
from base64 import b64encode
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from streams.tasks import background
from streams.wire.codec import dumps
from tests.app.callers import ask
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.authority import ROOT
from vendors.sandbox.faults import key_of
from vendors.sandbox.payments.paypal.webhooks import CERTIFICATES, signed

PATH = "/bp/webhook/walletpay/default/Default"
AT_ONCE = 4
"""How many verifications run at once."""
CALL_S = 1


def body() -> bytes:
    return dumps({"id": f"WH-{uuid4().hex}", "event_type": "CHECKOUT.ORDER.APPROVED", "resource": {}})


async def deliver(wallet: Wallet, **forged: str) -> int:
    headers, raw = signed(body(), WEBHOOK, tls_url=wallet.sandbox.sandbox.tls_url)
    changed = {f"PAYPAL-{name.replace('_', '-')}": value for name, value in forged.items()}
    return (await ask(wallet.server, "POST", PATH, data=raw, headers={**headers, **changed}))[0]


async def forge(wallet: Wallet, statuses: Counter[int], *, count: int, invent_urls: bool = False) -> None:
    """Deliver `count` webhooks whose signatures are random, each with a certificate of its own if `invent_urls`."""
    signature = b64encode(b"x" * 256).decode()

    async def one() -> None:
        invented = f"{wallet.sandbox.sandbox.tls_url}{CERTIFICATES}/CERT-{uuid4().hex}"
        urls = {"CERT_URL": invented} if invent_urls else {}
        statuses[await deliver(wallet, TRANSMISSION_SIG=signature, **urls)] += 1

    await asyncio.gather(*(one() for _ in range(count)))


def verifications(wallet: Wallet) -> int:
    paths = [call.asked.get("path", "") for call in wallet.sandbox.bill.since(0) if call.asked]
    return sum(path.endswith("/verify-webhook-signature") for path in paths)


def downloads(wallet: Wallet) -> int:
    return sum(call.stage == "certificate" for call in wallet.sandbox.bill.since(0))


@pytest.mark.parametrize(("offline", "count"), [(False, 500), (True, 100)])
async def test_an_order_is_created_beside_forged_webhooks(wallet: Wallet, *, offline: bool, count: int) -> None:
    hosts = {"certificate_hosts": ["127.0.0.1"], "certificate_ca": ROOT} if offline else {}
    await wallet.configure(client_secret=key_of(delay_ms=1000 * CALL_S), concurrency=8, waiting=8, **hosts)
    statuses: Counter[int] = Counter()
    began = time.monotonic()
    async with background(forge(wallet, statuses, count=count, invent_urls=offline)):
        await until(lambda: verifications(wallet) > 0)
        ordered_at = time.monotonic()
        await wallet.order()
        order_s = time.monotonic() - ordered_at
        await until(lambda: statuses.total() == count)
    all_s = time.monotonic() - began
    assert set(statuses) <= {400, 503}
    assert verifications(wallet) <= AT_ONCE * (all_s / CALL_S + 1)
    assert order_s < count / AT_ONCE * CALL_S / 4, (
        "behind the forged webhooks it would have taken four times as long"
    )
    assert await wallet.rows("select 1 from webhooks") == []


async def test_a_genuine_webhook_is_verified_beside_many_forged_ones(wallet: Wallet) -> None:
    await wallet.configure(certificate_hosts=["127.0.0.1"], certificate_ca=ROOT)
    assert await deliver(wallet) == 200
    statuses: Counter[int] = Counter()
    async with background(forge(wallet, statuses, count=100, invent_urls=True)):
        await until(lambda: downloads(wallet) > 1)
        assert await deliver(wallet) == 200
        await until(lambda: statuses.total() == 100)
    before = downloads(wallet)
    assert await deliver(wallet) == 200
    assert downloads(wallet) == before, "the genuine certificate is still known"


@pytest.mark.parametrize(
    "forged",
    [
        {"TRANSMISSION_SIG": ""},
        {"TRANSMISSION_ID": "a b"},
        {"TRANSMISSION_TIME": (utc_now() - timedelta(days=4)).isoformat()},
        {"AUTH_ALGO": "none"},
        {"CERT_URL": "https://elsewhere.example/cert"},
        {"CERT_URL": "http://api.paypal.com/cert"},
    ],
)
async def test_what_cannot_be_genuine_costs_no_call(wallet: Wallet, forged: dict[str, Any]) -> None:
    """The config names no hosts, so that PayPal would be asked. Its certificates come from its own hosts only."""
    await wallet.configure(base_url=None)
    assert await deliver(wallet, **forged) == 400
