"""What a user may subscribe to, on all platforms: one live subscription to a product, one trial of an asset.

Requests for a second live subscription are refused. One may become active nevertheless, for example because it
waited for its approval or its first payment, or was suspended. The one that became active later, by our reads, is
cancelled at the platform, and what was paid for it from then on is refunded.
"""

from storage.configs.kinds.products import Product
from storage.payments import subscribed
from storage.postgres.database import Connection
from streams.wire.errors import InvalidOperation


class AlreadySubscribed(InvalidOperation):
    """The user has a subscription to the product that renews, by wallet or with a card."""


class TrialUsed(InvalidOperation):
    """The product begins with a free trial, and the user has had one of its asset, by wallet or with a card."""


async def check_none_live(
    conn: Connection, app_id: str, uid: str, *, bp_product_id: str, product: Product, besides: str = ""
) -> None:
    """Raise `AlreadySubscribed` if a user has a live subscription to a product. The user is locked.

    `besides` is the row of one that does not count.
    """
    if await subscribed.has_live(conn, app_id, uid, bp_product_id=bp_product_id, product=product, besides=besides):
        raise AlreadySubscribed(f"the user has a subscription to {bp_product_id}")


async def check_trial_unused(conn: Connection, app_id: str, uid: str, *, product: Product) -> None:
    """Raise `TrialUsed` if a product has a free trial, and a user has had one of its asset. The user is locked."""
    if product.has_free_trial and await subscribed.had_trial(conn, app_id, uid, asset=product.asset):
        raise TrialUsed(f"the user has had a free trial of {product.asset}")
