"""What a draft of a product costs by wallet, as the wallet platform says."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from app.payments.wallet.wallet import account_of, return_urls, wallet_config
from app.services import Services
from app.trials.offers import Offer
from app.trials.terms import ELSEWHERE, PriceTrial, Terms, differences, period_of, terms_of
from storage.configs.kinds.products import Product, WalletProduct
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import new_id
from streams.wire.money import Money
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.fields import rounded
from vendors.payments.paypal.subscriptions import BillingCycle, Plan

_CUSTOM_ID = "trial"
"""Takes the place of the id of the user."""


def wallet_offers(services: Services, app_id: str, product: Product) -> Iterator[Offer]:
    """Yield the prices by wallet. The draft must name the platform."""
    wallet = product.walletpay
    if wallet is None:
        return
    if product.type == "subscription":
        yield from _subscriptions(services, app_id, product, wallet)
        return
    row = PriceTrial(platform="walletpay", config=wallet.config, object="order", draft=terms_of(product))
    if product.price is None:
        yield Offer(row.model_copy(update={"differences": ["The draft has no price, so nobody can buy it."]}))
        return
    for money, countries in product.price.places.items():
        tried = row.model_copy(update={"countries": countries, "draft": terms_of(product, [*countries, ""][0])})
        yield Offer(tried, partial(_order, services, app_id, product, wallet.config, money))


def _subscriptions(services: Services, app_id: str, product: Product, wallet: WalletProduct) -> Iterator[Offer]:
    plans: dict[str, list[str]] = {}
    if wallet.plan_id is not None:
        # It also applies in the countries that have a price of their own, but no plan.
        own = product.price.countries if product.price else {}
        plans[wallet.plan_id] = [ELSEWHERE, *(country for country in own if country not in wallet.plans)]
    for country, plan_id in wallet.plans.items():
        plans.setdefault(plan_id, []).append(country)
    for plan_id, countries in plans.items():
        row = PriceTrial(
            platform="walletpay",
            config=wallet.config,
            object="plan",
            id=plan_id,
            countries=[] if ELSEWHERE in countries else countries,
            draft=terms_of(product, countries[0]),
        )
        read = partial(_read_plan, services, app_id, product, wallet.config, plan_id=plan_id, countries=countries)
        yield Offer(row, read)
    if not plans:
        problem = "The draft names no plan_id, so nobody can subscribe by wallet."
        yield Offer(
            PriceTrial(
                platform="walletpay",
                config=wallet.config,
                object="plan",
                draft=terms_of(product),
                differences=[problem],
            )
        )


async def _read_plan(
    services: Services, app_id: str, product: Product, config: str, *, plan_id: str, countries: Sequence[str]
) -> dict[str, Any]:
    try:
        plan = await account_of(services, app_id, config).plan(plan_id)
    except PayPalRefused as refused:
        if refused.lacks_object:
            return {"differences": [f"The wallet platform has no plan {plan_id}."]}
        raise
    found = _terms(plan)
    problems = [*differences(product, found, countries, noun="plan"), *_more(plan)]
    return {"found": found, "active": plan.status == "ACTIVE", "differences": problems}


def _terms(plan: Plan) -> Terms:
    money, trial = plan.payment(), next(iter(plan.trials), None)
    trial_price = None if trial is None else trial.pricing_scheme.fixed_price
    return Terms(
        amount=None if money is None else money.amount,
        currency="" if money is None else money.currency,
        period="" if plan.regular is None else _length(plan.regular, cycles=1),
        trial="" if trial is None else _length(trial, cycles=max(1, trial.total_cycles)),
        trial_amount=0 if trial_price is None else trial_price.amount,
    )


def _length(cycle: BillingCycle, *, cycles: int) -> str:
    frequency = cycle.frequency
    return "" if frequency is None else period_of(frequency.interval_unit, frequency.interval_count * cycles)


def _more(plan: Plan) -> Iterator[str]:
    """Yield a sentence for each thing that a plan has, and that a draft cannot say."""
    if plan.status != "ACTIVE":
        yield "The plan is not active, so nobody can subscribe to it."
    if len(plan.trials) > 1:
        yield "The plan has several trials, one after the other."
    if plan.regular is not None and plan.regular.total_cycles:
        yield f"The plan ends after {plan.regular.total_cycles} payments."
    fee = plan.payment_preferences.setup_fee
    if fee is not None and fee.amount:
        yield f"The first payment takes a setup fee of {fee} in addition."


async def _order(services: Services, app_id: str, product: Product, config: str, money: Money) -> dict[str, Any]:
    """Create an order that nobody approves, as for a purchase. Raises `ServiceError` if it is refused."""
    if rounded(money) != money:
        raise ConfigInvalid("price has more decimals than the platform accepts")
    return_url, cancel_url = return_urls(services, app_id, config)
    order = await account_of(services, app_id, config).create_order(
        new_id(),
        amount=money,
        custom_id=_CUSTOM_ID,
        description=product.label,
        return_url=return_url,
        cancel_url=cancel_url,
        brand_name=wallet_config(services, app_id, config).brand_name,
    )
    made = order.amount or money  # A response may leave it out.
    return {"id": order.id, "status": order.status, "found": Terms(amount=made.amount, currency=made.currency)}
