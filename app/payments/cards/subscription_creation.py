"""Creates subscriptions at the card platform, with the card that the user has chosen."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from app.payments.cards.periods import ROW_ID, find_subscription
from app.payments.cards.platform import CardPlatform
from storage.payments.cards import subscriptions as card_subscriptions
from storage.payments.cards.subscriptions import CardSubscription
from streams.wire.errors import InvalidOperation, ItemNotFound, ServiceError, listed
from vendors.errors import Refused, VendorError
from vendors.payments.stripe.client import Stripe
from vendors.payments.stripe.errors import CardDeclined, error_in, lacks_customer

T = TypeVar("T")

_REFUSALS = frozenset({400, 402, 404})
"""Statuses that the platform stores for a key. It sends others before it looks for the result of an earlier
call."""


class CardSetupNotFound(ItemNotFound):
    """The user has no such setup intent or payment method at the card platform."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{listed([name])} does not exist")


class SetupUnfinished(InvalidOperation):
    """The setup intent was not confirmed with a card."""

    def __init__(self) -> None:
        super().__init__("the setup intent was not confirmed with a card")


@dataclass(frozen=True, slots=True)
class Payer:
    """How a user pays: a card, a setup intent that was confirmed with a card, or nothing yet."""

    payment_method_id: str | None
    setup_intent_id: str | None


async def create_subscription(platform: CardPlatform, row: CardSubscription, payer: Payer) -> str:
    """Create a subscription at the platform and return its id. If the platform refuses, the row is closed.

    Concurrent requests of the user share the row, and the card of the first one.
    """
    database = platform.services.database

    async def create(customer: str, replaced: str | None) -> str:
        prepared = row
        if row.customer_id != customer:
            method = await card_of(platform.stripe, customer, payer, key=row.row_id)
            async with database.connection() as conn:
                prepared = await card_subscriptions.prepare(
                    conn, row.row_id, customer_id=customer, replaced=replaced, payment_method=method
                )
        return await _create_or_close(platform, prepared)

    created = await platform.for_customer(row.uid, create, customer=row.customer_id)
    async with database.connection() as conn:
        await card_subscriptions.link(
            conn, row.app_id, config=row.config, row_id=row.row_id, subscription_id=created
        )
    return created


async def _create_or_close(platform: CardPlatform, row: CardSubscription) -> str:
    """Create a subscription and return its id. If it is refused, close the row, unless the customer was deleted."""
    try:
        return await _create_unless_known(platform, row)
    except ServiceError as error:
        if _is_refusal(error):
            async with platform.services.database.connection() as conn:
                await card_subscriptions.close(conn, row.row_id, status="refused")
        raise


async def _create_unless_known(platform: CardPlatform, row: CardSubscription) -> str:
    """Create a subscription, unless an earlier attempt has done so. Return its id."""
    if not platform.knows_keys_since(row.created_at):
        earlier = await find_subscription(platform, row)
        if earlier is not None:
            return earlier.id
    stripe, customer, method = platform.stripe, row.customer_id, row.payment_method
    assert customer is not None, "it is prepared"
    if method is not None:
        await stripe.set_default_method(f"{row.row_id}:default", customer, payment_method=method)
    made = await stripe.create_subscription(
        f"{row.row_id}:create",
        customer=customer,
        price=row.price_id,
        payment_method=method,
        trial_end=None if row.trial_ends_at is None else int(row.trial_ends_at.timestamp()),
        metadata={"app_id": row.app_id, "uid": row.uid, ROW_ID: row.row_id},
    )
    return made.id


async def card_of(stripe: Stripe, customer: str, payer: Payer, *, key: str) -> str | None:
    """Return the card of the user that the request names, attached to the customer.

    `None`: it names none, or the card is declined.
    """
    if (setup := payer.setup_intent_id) is not None:
        intent = await existing(stripe.setup_intent(setup), setup)
        if intent.customer != customer:
            raise CardSetupNotFound(setup)
        if intent.status != "succeeded" or intent.payment_method is None:
            raise SetupUnfinished
        return intent.payment_method
    if (name := payer.payment_method_id) is None:
        return None
    method = await existing(stripe.payment_method(name), name)
    if method.customer is None:
        try:
            method = await stripe.attach(f"{key}:attach:{method.id}", method.id, customer=customer)
        except CardDeclined:
            return None  # As after a declined payment, another card can pay.
    if method.customer != customer:
        raise CardSetupNotFound(name)
    return method.id


async def existing(reading: Awaitable[T], name: str) -> T:
    """Return the result of `reading`. Raises `CardSetupNotFound` if the platform does not have the object."""
    try:
        return await reading
    except Refused as refused:
        if refused.vendor_status == 404:
            raise CardSetupNotFound(name) from None
        raise


def _is_refusal(error: ServiceError) -> bool:
    """Return whether the platform has certainly not executed the call."""
    if not isinstance(error, VendorError):
        return True
    if not isinstance(error, Refused) or error.vendor_status not in _REFUSALS:
        return False
    if lacks_customer(error):
        return False
    # Another call with this key has other parameters, so it may have succeeded.
    return error_in(error).type != "idempotency_error"
