"""The card platform of an app, and the customers of its users there."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from app.platforms.accounts import open_stripe
from app.services import Services
from storage.configs.kinds.cardpay import CARDPAY, CardPay
from storage.configs.rows import ConfigKey
from storage.payments.cards import customers as card_customers
from vendors.errors import Refused
from vendors.payments.stripe.client import KEYS_KEPT, Stripe
from vendors.payments.stripe.errors import lacks_customer
from vendors.payments.stripe.objects import Page, PaymentIntent, Subscription

Result = TypeVar("Result")
Found = TypeVar("Found", PaymentIntent, Subscription)

DEFAULT_CONFIG = "Default"


class ListPage(Protocol[Found]):
    """A call that returns the page of a customer's list after an object."""

    async def __call__(self, customer: str, *, after: str | None) -> Page[Found]: ...


@dataclass(frozen=True, slots=True)
class CardPlatform:
    services: Services
    app_id: str
    name: str
    """The config of kind `cardpay`."""
    config: CardPay
    stripe: Stripe

    def knows_keys_since(self, at: datetime) -> bool:
        """Return whether a call that was first made at `at`, or later, can be repeated with its key."""
        return self.services.clock.now(self.app_id) - at < KEYS_KEPT

    async def customer_of(self, uid: str) -> str:
        """Return the id of a user's customer at the platform. Create the customer if necessary.

        If a response was lost, and the platform has forgotten the key, a second customer is created. The first one
        has neither cards nor payments.
        """
        database = self.services.database
        async with database.transaction() as conn:
            now = self.services.clock.now(self.app_id)
            row = await card_customers.ensure(conn, self.app_id, uid, config=self.name, now=now)
        if row.customer_id is not None:
            return row.customer_id
        metadata = {"app_id": self.app_id, "uid": uid}
        made = await self.stripe.create_customer(f"{row.row_id}:create", metadata=metadata)
        async with database.connection() as conn:
            await card_customers.set_customer(conn, row.row_id, customer_id=made.id)
        return made.id

    async def for_customer(
        self, uid: str, call: Callable[[str, str | None], Awaitable[Result]], *, customer: str | None = None
    ) -> Result:
        """Return the result of `call` for a user's customer, which is `customer` if that is known.

        If that customer was deleted, `call` is called again with a new one, and with the one that it replaces.
        """
        customer = customer or await self.customer_of(uid)
        try:
            return await call(customer, None)
        except Refused as refused:
            if not lacks_customer(refused):
                raise
        async with self.services.database.connection() as conn:
            await card_customers.forget(conn, self.app_id, uid, config=self.name, customer_id=customer)
        return await call(await self.customer_of(uid), customer)


def card_platform(services: Services, app_id: str, name: str) -> CardPlatform:
    """Return the platform of a config. Raises `ConfigInvalid` if it is missing or cannot be used."""
    config = services.configs.required(CARDPAY, app_id, name).value
    key = ConfigKey(app_id, CARDPAY.name, name)
    stripe = open_stripe(services.vendors, config, key=key, sandbox_url=services.settings.sandbox_url)
    return CardPlatform(services, app_id, name, config, stripe)


async def find_in(list_page: ListPage[Found], customer: str, *, field: str, value: str) -> Found | None:
    """Return the object of a customer's list whose metadata has this value in a field."""
    after: str | None = None
    while True:
        page = await list_page(customer, after=after)
        for found in page.data:
            if found.metadata.get(field) == value:
                return found
        if not page.has_more or not page.data:
            return None
        after = page.data[-1].id
