"""Orders and subscriptions that users pay with a wallet."""

from typing import cast

from parley_client.calls import Calls
from parley_client.http import segment
from parley_client.types import OrderReply, SubscriptionReply, WalletOrder

_WALLET = "/bp/asset/walletpay"


class Wallet:
    """Create one, send the user to its `approve_link_href`, then capture the order or sync the subscription."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create_order(self, product_id: str, *, country_code: str | None = None) -> WalletOrder:
        body = {"product_id": product_id, "country_code": country_code}
        return cast(WalletOrder, (await self._calls.once(f"{_WALLET}/create", body))["walletpay_order"])

    async def capture_order(self, order_id: str) -> WalletOrder:
        """Take the payment that the user has approved."""
        reply = await self._calls.once(f"{_WALLET}/capture", {"order_id": order_id})
        return cast(WalletOrder, reply["walletpay_order"])

    async def sync_order(self, order_id: str) -> OrderReply:
        """Return an order as the platform has it, and grant what it has paid for."""
        return cast(OrderReply, await self._calls.get(f"{_WALLET}/sync/{segment(order_id)}"))

    async def fetch_order(self, order_id: str) -> OrderReply:
        """Return an order as the platform has it, without granting anything."""
        return cast(OrderReply, await self._calls.get(f"{_WALLET}/{segment(order_id)}/fetch"))

    async def subscribe(
        self,
        product_id: str,
        *,
        country_code: str | None = None,
        return_url: str | None = None,
        cancel_url: str | None = None,
    ) -> SubscriptionReply:
        body = {
            "product_id": product_id,
            "country_code": country_code,
            "return_url": return_url,
            "cancel_url": cancel_url,
        }
        return cast(SubscriptionReply, await self._calls.once(f"{_WALLET}_sub", body))

    async def sync_subscription(self, sub_id: str) -> SubscriptionReply:
        """Return a subscription as the platform has it, and grant what it has paid for."""
        return await self._subscription(sub_id, "sync")

    async def fetch_subscription(self, sub_id: str) -> SubscriptionReply:
        """Return a subscription with its next payment, without granting anything."""
        return await self._subscription(sub_id, "fetch")

    async def upgrade(self, sub_id: str, new_product_id: str) -> SubscriptionReply:
        """Begin an upgrade. Its subscription has another id."""
        path = f"{_WALLET}_sub/{segment(sub_id)}/upgrade"
        return cast(SubscriptionReply, await self._calls.once(path, {"new_bp_product_id": new_product_id}))

    async def sync_upgrade(self, sub_id: str) -> SubscriptionReply:
        """Return the subscription of an upgrade after its approval, and grant what it has paid for."""
        return await self._subscription(sub_id, "sync_upgrade")

    async def _subscription(self, sub_id: str, action: str) -> SubscriptionReply:
        return cast(SubscriptionReply, await self._calls.get(f"{_WALLET}_sub/{segment(sub_id)}/{action}"))
