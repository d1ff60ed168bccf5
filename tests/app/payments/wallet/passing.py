"""Time passes for a user who pays by wallet, and the account is closed."""

from datetime import timedelta

from tests.app.callers import ask
from tests.app.payments.wallet.wallets import Wallet

MINUTES = timedelta(minutes=3)


async def later(wallet: Wallet, by: timedelta = MINUTES) -> None:
    """Move the clocks on, and read back what is due then."""
    now = wallet.server.services.clock.now("default")
    await wallet.travel(now + by)
    await wallet.reconcile()


async def deactivate(wallet: Wallet) -> None:
    for step in ("", "/confirm"):
        headers = {"X-Service-Session-Token": wallet.session}
        assert (await ask(wallet.server, "POST", f"/bp/user/me/deactivate{step}", headers=headers))[0] == 200


async def is_cancelled(wallet: Wallet, sub_id: str) -> bool:
    subscription = await wallet.platform("GET", f"/v1/billing/subscriptions/{sub_id}")
    return bool(subscription["status"] == "CANCELLED")
