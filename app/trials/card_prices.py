"""What a draft of a product costs with a card, as the card platform says."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from app.payments.cards.platform import DEFAULT_CONFIG, CardPlatform, card_platform
from app.services import Services
from app.trials.offers import Offer
from app.trials.terms import ELSEWHERE, PriceTrial, Terms, differences, period_of, terms_of
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.kinds.products import CardProduct, Product
from streams.wire.errors import ConfigInvalid, InvalidParameter, ServiceError
from streams.wire.ids import new_id
from streams.wire.money import Money
from vendors.errors import Refused
from vendors.payments.stripe.errors import FIELDS, lacks_object
from vendors.payments.stripe.objects import PaymentIntent, Price, platform_amount


def card_offers(services: Services, app_id: str, product: Product) -> Iterator[Offer]:
    """Yield the prices with a card.

    A subscription needs an entry of the draft. Any other product can be paid with each config of the card platform:
    without an entry, the default one is tried if it exists.
    """
    card = product.cardpay
    if card is None and (
        product.type == "subscription" or not services.configs.exists(CARDPAY, app_id, DEFAULT_CONFIG)
    ):
        return
    card = card or CardProduct()
    if product.type == "subscription":
        yield _subscription(services, app_id, product, card)
        return
    row = PriceTrial(platform="cardpay", config=card.config, object="payment", draft=terms_of(product))
    if product.price is None:
        yield Offer(row.model_copy(update={"differences": ["The draft has no price, so nobody can buy it."]}))
        return
    for money, countries in product.price.places.items():
        tried = row.model_copy(update={"countries": countries, "draft": terms_of(product, [*countries, ""][0])})
        yield Offer(tried, partial(_pay, services, app_id, card.config, money))


def _subscription(services: Services, app_id: str, product: Product, card: CardProduct) -> Offer:
    row = PriceTrial(
        platform="cardpay", config=card.config, object="price", id=card.price_id or "", draft=terms_of(product)
    )
    if card.price_id is None:
        problem = "The draft names no price_id, so nobody can subscribe with a card."
        return Offer(row.model_copy(update={"differences": [problem]}))
    return Offer(row, partial(_read_price, services, app_id, product, card.config, card.price_id))


async def _read_price(
    services: Services, app_id: str, product: Product, config: str, price_id: str
) -> dict[str, Any]:
    platform = card_platform(services, app_id, config)
    try:
        price = await platform.stripe.price(price_id)
    except Refused as refused:
        if lacks_object(refused):
            return {"differences": [f"The card platform has no price {price_id}."]}
        raise
    found = _terms(price, product)
    problems = list(differences(product, found, _countries(product), noun="price"))
    if price.recurring is None:
        problems = ["The price is for a single payment, and not for a subscription."]
    if not price.active:
        problems.append("The price is not active, so nobody can subscribe to it.")
    if product.trial is not None and product.trial.amount:
        problems.append("A trial with a card is free, so trial.amount must be 0.")
    return {"found": found, "active": price.active, "differences": problems}


def _countries(product: Product) -> list[str]:
    """Return the countries with a price in the draft. The card platform has one price for all of them."""
    return [ELSEWHERE, *(product.price.countries if product.price else ())]


def _terms(price: Price, product: Product) -> Terms:
    """Return what the platform takes. The trial is that of the draft, because this server sets its end."""
    money, recurring = price.money, price.recurring
    return Terms(
        amount=None if money is None else money.amount,
        currency=price.currency.upper(),
        period="" if recurring is None else period_of(recurring.interval, recurring.interval_count),
        trial="" if product.trial is None else product.trial.period,
        trial_amount=0 if product.trial is None else product.trial.amount,
    )


async def _pay(services: Services, app_id: str, config: str, money: Money) -> dict[str, Any]:
    """Create a payment without a card, and cancel it. Raises `ServiceError` if it is refused."""
    platform = card_platform(services, app_id, config)
    intent = await _create(platform, money)
    found = {"id": intent.id, "found": Terms(amount=money.amount, currency=money.currency)}
    try:
        cancelled = await platform.stripe.cancel_payment_intent(new_id(), intent.id)
    except ServiceError as error:
        problem = f"{error.error_type}: the payment was accepted, but it could not be cancelled: {error.what}"
        return {**found, "status": intent.status, "error": problem}
    return {**found, "status": cancelled.status}


async def _create(platform: CardPlatform, money: Money) -> PaymentIntent:
    accepted = platform.config.currencies
    if accepted and money.currency not in accepted:
        raise ConfigInvalid(f"cardpay {platform.name}: {money.currency} is not one of currencies")
    try:
        amount = platform_amount(money)
    except ValueError as error:
        raise InvalidParameter(f"amount {error}") from None
    try:
        return await platform.stripe.create_payment_intent(
            new_id(), amount=amount, currency=money.currency,
            customer=None, payment_method=None, confirm=False, email=None, metadata={},
        )  # fmt: skip
    except InvalidParameter as refused:  # It names the field as clients of the interface send it.
        raise InvalidParameter(refused.what.replace(FIELDS["amount"], "amount")) from None
