"""Tries what a payer would pay for a draft of a product, at each payment platform that sells it."""

import time

from app.http.rows.endpoint import Call
from app.trials.card_prices import card_offers
from app.trials.offers import try_offer
from app.trials.terms import PriceTrial
from app.trials.wallet_prices import wallet_offers
from storage.configs.kinds.products import Product

_MOST = 20
_WITHIN_S = 30
"""After this time, no further price is tried. Each call has a limit of its own."""


async def try_product(call: Call, app_id: str, product: Product) -> tuple[list[PriceTrial], int]:
    """Return the prices of a draft as the platforms say, and the number of prices that were not tried.

    One that does not answer is asked once.
    """
    offers = [
        *card_offers(call.services, app_id, product),
        *wallet_offers(call.services, app_id, product),
    ]
    until = time.monotonic() + _WITHIN_S
    tried: list[PriceTrial] = []
    unreachable: set[tuple[str, str]] = set()
    for offer in offers:
        account = offer.row.platform, offer.row.config
        if len(tried) == _MOST or account in unreachable or time.monotonic() > until:
            continue
        result = await try_offer(offer)
        tried.append(result.row)
        if result.unreachable:
            unreachable.add(account)
    return tried, len(offers) - len(tried)
