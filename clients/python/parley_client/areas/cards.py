"""Cards: saving one, and subscriptions that are paid with it."""

from typing import cast

from parley_client.calls import Calls
from parley_client.http import segment
from parley_client.types import CardSubscriptionReply, SetupIntent

_SUBSCRIPTIONS = "/bp/asset/cardpay_sub"


class Cards:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create_setup_intent(
        self, *, product_id: str | None = None, pay_platform_config_name: str | None = None
    ) -> SetupIntent:
        """Begin to save a card. The app completes it with the `client_secret`, at the platform."""
        body = {"product_id": product_id, "pay_platform_config_name": pay_platform_config_name}
        reply = await self._calls.once("/bp/asset/cardpay_setup_intent", body)
        return cast(SetupIntent, reply["cardpay_setup_intent"])

    async def subscribe(
        self, product_id: str, *, payment_method_id: str | None = None, setup_intent_id: str | None = None
    ) -> CardSubscriptionReply:
        """Subscribe with a card that the user has saved, or with that of a confirmed setup intent."""
        body = {
            "product_id": product_id,
            "payment_method_id": payment_method_id,
            "setup_intent_id": setup_intent_id,
        }
        return cast(CardSubscriptionReply, await self._calls.once(_SUBSCRIPTIONS, body))

    async def subscription(self, sub_id: str) -> CardSubscriptionReply:
        """Return a subscription as the platform has it, and grant what it has paid for."""
        return cast(CardSubscriptionReply, await self._calls.get(f"{_SUBSCRIPTIONS}/{segment(sub_id)}"))

    async def cancel(self, sub_id: str) -> CardSubscriptionReply:
        """Cancel a subscription. It lasts until the end of the period that is paid."""
        return cast(CardSubscriptionReply, await self._calls.delete(f"{_SUBSCRIPTIONS}/{segment(sub_id)}"))
