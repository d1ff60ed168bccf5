"""The calls of an app's server for one user."""

from datetime import datetime
from typing import Any, cast

from parley_client.http import segment
from parley_client.types import Asset, ErasureReceiptReply, PaymentIntent, Withdrawal
from parley_client.user_calls import UserCalls

_ME = "/bp/user/me"


class ServerUser(UserCalls):
    """The calls of an app's server for one user."""

    async def record_activity(self) -> None:
        """Report that the user was active."""
        await self._calls.post(f"{_ME}/account/record_activity", repeatable=True)

    async def create_payment_intent(self, amount: int, currency: str, **options: Any) -> PaymentIntent:
        """Begin a payment by card. The app completes it with the `client_secret`.

        `amount` is in minor units, such as cents. `options` are further fields, such as `product_id`, `email`,
        `pay_platform_config_name` or `with_customer_payment_method`.
        """
        body = {**options, "amonut": amount, "currency": currency}  # The interface spells it so.
        reply = await self._calls.once("/bp/asset/cardpay_payment_intent", body)
        return cast(PaymentIntent, reply["cardpay_payment_intent"])

    async def payment_intent(
        self, payment_intent_id: str, *, pay_platform_config_name: str | None = None
    ) -> tuple[PaymentIntent, list[Asset]]:
        """Return a payment as the platform has it, and what the user has now."""
        reply = await self._calls.get(
            f"/bp/asset/cardpay_payment_intent/{segment(payment_intent_id)}",
            pay_platform_config_name=pay_platform_config_name,
        )
        return cast(PaymentIntent, reply["cardpay_payment_intent"]), cast(list[Asset], reply["assets"])

    async def withdraw(
        self, withdraw_id: str, cash_num: float, *, start_time: datetime, **options: Any
    ) -> Withdrawal:
        """Begin a payment to the user.

        `withdraw_id` is unique in the app, so that nothing is paid twice. `start_time` has a time zone.
        """
        body = {**options, "withdraw_id": withdraw_id, "cash_num": cash_num, "start_time": start_time.isoformat()}
        return cast(Withdrawal, (await self._calls.once("/bp/withdraw/", body))["withdraw"])

    async def withdrawal(self, withdraw_id: str) -> Withdrawal:
        return cast(Withdrawal, (await self._calls.get("/bp/withdraw/", withdraw_id=withdraw_id))["withdraw"])

    async def erasure_receipt(self) -> ErasureReceiptReply:
        """Return what was deleted of a user who has left, and what is kept."""
        return cast(ErasureReceiptReply, await self._calls.get(f"{_ME}/erasure_receipt"))
