"""The card platform of an app, and the customer that a user is there."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from actors.stripe_clients import StripeClient, open_stripe
from app.services import Services
from storage.config_rows import ConfigKey
from storage.kinds.cardpay import CARDPAY, CardPay
from storage.payments import card_customers
from vendors.payments.stripe import Stripe

Result = TypeVar("Result")

DEFAULT_CONFIG = "Default"


@dataclass(frozen=True, slots=True)
class CardPlatform:
    services: Services
    app_id: str
    name: str
    """The config of kind `cardpay`."""
    config: CardPay
    client: StripeClient

    async def call(self, use: Callable[[Stripe], Awaitable[Result]]) -> Result:
        """Return the result of `use`. Raises `VendorError`; what was asked may have been done nevertheless."""
        return await self.client.call(use)

    async def customer_of(self, uid: str) -> str:
        """Return the platform's id of a user, who becomes a customer if necessary."""
        database = self.services.database
        async with database.transaction() as conn:
            now = self.services.clock.now(self.app_id)
            row = await card_customers.ensure(conn, self.app_id, uid, config=self.name, now=now)
        if row.customer_id is not None:
            return row.customer_id
        metadata = {"app_id": self.app_id, "uid": uid}
        made = await self.call(lambda stripe: stripe.create_customer(f"{row.row_id}:create", metadata=metadata))
        async with database.connection() as conn:
            await card_customers.set_customer(conn, row.row_id, customer_id=made.id)
        return made.id


def card_platform(services: Services, app_id: str, name: str) -> CardPlatform:
    """Return the platform of a config. Raises `ConfigInvalid` if it is missing or cannot be used."""
    config = services.configs.required(CARDPAY, app_id, name).value
    key = ConfigKey(app_id, CARDPAY.name, name)
    client = open_stripe(services.vendors, config, key=key, sandbox_url=services.settings.sandbox_url)
    return CardPlatform(services, app_id, name, config, client)
