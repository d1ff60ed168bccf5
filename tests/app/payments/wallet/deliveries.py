"""Webhooks that are signed as the wallet platform signs them."""

from typing import Any

from streams.wire.codec import dumps
from tests.app.callers import ask
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet
from vendors.sandbox.payments.paypal.webhooks import signed

PATH = "/bp/webhook/walletpay/default/Default"


async def deliver(wallet: Wallet, event: Any, *, path: str = PATH, webhook: str = WEBHOOK, **how: Any) -> int:
    """Sign an event as the platform does, and deliver it."""
    body = event if isinstance(event, bytes) else dumps(event)
    headers, body = signed(body, webhook, tls_url="https://127.0.0.1:1", **how)
    return (await ask(wallet.server, "POST", path, data=body, headers=dict(headers)))[0]
