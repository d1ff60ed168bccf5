"""The jobs that cancel subscriptions at payment platforms: of deactivated users, and second ones with a card."""

from app.payments.cards.periods import sync_subscription
from app.payments.cards.platform import card_platform
from app.payments.wallet import subscription_states as wallet_subscription_states
from app.payments.wallet import subscription_sync as wallet_subscription_sync
from app.services import Services
from storage.payments.cards import subscriptions as card_subscriptions
from storage.payments.cards.subscriptions import CardSubscription, EndSecondCardSubscription
from storage.payments.endings import EndSubscriptions
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet.subscriptions import RENEWING_STATUSES, WalletSubscription
from streams.tasks import run_all


async def end_subscriptions(services: Services, job: EndSubscriptions) -> None:
    """Cancel all subscriptions of a deactivated user. If one fails, the others are still cancelled."""
    async with services.database.connection() as conn:
        wallet = await wallet_subscriptions.unended_of_user(conn, job.app_id, job.uid)
        cards = await card_subscriptions.unended_of_user(conn, job.app_id, job.uid)
    await run_all(
        (
            *(_end_wallet(services, job.app_id, row) for row in wallet),
            *(_end_card(services, row) for row in cards),
        )
    )


async def end_second_card(services: Services, job: EndSecondCardSubscription) -> None:
    """Cancel a subscription with a card whose user has another one to its product."""
    async with services.database.connection() as conn:
        row = await card_subscriptions.get(conn, job.row_id)
    await _end_card(services, row)


async def _end_wallet(services: Services, app_id: str, row: WalletSubscription) -> None:
    """Cancel a subscription that the user has approved. The platform lets others expire."""
    found = (await wallet_subscription_states.read_subscription(services, app_id, row)).subscription
    if found is not None and found.status in RENEWING_STATUSES:
        await wallet_subscription_sync.cancel_subscription(services, app_id, row, reason="The account was deleted")


async def _end_card(services: Services, row: CardSubscription) -> None:
    name = row.subscription_id
    assert name is not None, "only subscriptions with an id are listed"
    platform = card_platform(services, row.app_id, row.config)
    found = await platform.stripe.subscription(name)
    if found.renews:
        await platform.stripe.cancel_now(f"{row.row_id}:end", name)
    await sync_subscription(platform, name, channel="server")
