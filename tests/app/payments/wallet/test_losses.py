"""A share of the webhooks is lost. Every grant arrives nevertheless, without any request of a client."""

from datetime import timedelta

from tests.app.callers import work_off, working
from tests.app.payments.killed_requests import kill_request
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet, put, subscriptions
from tests.waiting import until
from vendors.sandbox.faults import key_of

ORDERS = 8
SUBSCRIPTIONS = 6


async def granted(wallet: Wallet, *, channel: str | None = None) -> int:
    query = """
        select key from asset_entries where uid = $1 and kind = 'grant' and ($2::text is null or channel = $2)
    """
    return len(await wallet.rows(query, wallet.uid, channel))


async def test_every_grant_arrives_although_webhooks_are_lost(wallet: Wallet) -> None:
    services = wallet.server.services
    url = f"{wallet.server.url}/bp/webhook/walletpay/default/Default"
    rates = {name: {"count": 1000, "per_s": 1} for name in ("wallets", "payment_reads")}
    await put(wallet.server, "limits", "default", {"rates": rates})
    await wallet.control("webhook", id=WEBHOOK, url=url)
    await wallet.control("deliveries", fault="lost", rate=0.7, seed=1)  # One of three webhooks would be enough.
    for _ in range(ORDERS):
        order = await wallet.order()
        await wallet.approve(order["approve_link_href"])
        # As if the answer to the client's capture had been lost.
        await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    for sub in await subscriptions(wallet, SUBSCRIPTIONS):
        await wallet.approve(sub["approve_link_href"])
    await until(lambda: wallet.sandbox.sandbox.deliveries.is_idle)
    await work_off(services)
    assert 0 < await granted(wallet) < ORDERS + SUBSCRIPTIONS

    async with working(services):
        await wallet.travel(services.clock.now("default") + timedelta(minutes=15))
        await until(lambda: _has_granted(wallet, ORDERS + SUBSCRIPTIONS))
        for by in (timedelta(days=32), timedelta(minutes=15)):
            await wallet.travel(services.clock.now("default") + by)
        await until(lambda: _has_granted(wallet, ORDERS + 2 * SUBSCRIPTIONS))
    assert await granted(wallet, channel="reconciliation")


async def _has_granted(wallet: Wallet, count: int) -> bool:
    return await granted(wallet) == count


async def test_a_capture_whose_request_ends_before_its_commit_is_granted(wallet: Wallet) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])

    async def capture() -> None:
        await wallet.capture(order["id"])

    await wallet.configure(client_secret=key_of(delay_ms=250))
    await kill_request(wallet, capture())
    await wallet.configure(client_secret="sandbox")
    assert [payment["status"] for payment in (await wallet.books())["payments"]] == ["COMPLETED"]
    assert await wallet.entries() == []
    await wallet.travel(wallet.server.services.clock.now("default") + timedelta(minutes=3))
    await wallet.reconcile()
    assert await wallet.kinds() == ["grant"]
