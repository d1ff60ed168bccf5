"""Setup intents, by which users link a card for later payments (§4.9)."""

from typing import Annotated

from pydantic import Field

from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from app.http.rows.transactions import Transaction
from app.payments.cards.cards import ConfigName
from app.payments.cards.platform import DEFAULT_CONFIG, card_platform
from app.payments.cards.views import SetupIntentReply, setup_view
from storage.configs.kinds.products import PRODUCTS
from streams.wire.model import Model
from vendors.payments.stripe.objects import SetupIntent

ProductId = Annotated[str, Field(min_length=1, max_length=128)]
"""Name of a config of kind `products`."""
PlatformId = Annotated[str, Field(min_length=1, max_length=255)]
"""An id at the card platform."""


class NewSetupIntent(Model):
    product_id: ProductId | None = None
    """The product that the card is for. Its config of kind `cardpay` is used."""
    pay_platform_config_name: ConfigName | None = None
    """Name of a config of kind `cardpay`."""


async def create_setup_intent(call: Call, transaction: Transaction, body: Body[NewSetupIntent]) -> SetupIntentReply:
    """Begin to link a card to the user, for a subscription.

    The app confirms it with the `client_secret` and a card.
    """
    name = body.pay_platform_config_name or config_for(call, body.product_id)
    platform = card_platform(call.services, call.app_id, name)
    key = f"{transaction.operation_id}:create"

    async def create(customer: str, _: str | None) -> SetupIntent:
        return await platform.stripe.create_setup_intent(key, customer=customer)

    intent = await platform.for_customer(call.caller.user, create)
    async with transaction.begin():
        return transaction.answer(SetupIntentReply(cardpay_setup_intent=setup_view(intent)))


def config_for(call: Call, product_id: str | None) -> str:
    """Return the name of the config of kind `cardpay` of a product. Raises `ConfigInvalid` if it is unknown."""
    if product_id is None:
        return DEFAULT_CONFIG
    product = call.services.configs.required(PRODUCTS, call.app_id, product_id).value
    return DEFAULT_CONFIG if product.cardpay is None else product.cardpay.config
