"""Data for the payments page of a development server: the products, and tokens of the app's own server."""

from contextlib import suppress

from app.dev.area import DEVELOPMENT, require_app
from app.http.callers.tokens import make_server_token
from app.http.rows.docs import Docs
from app.http.rows.endpoint import DEFAULT_APP, Call, Endpoint
from app.http.rows.inputs import Body, Query
from storage.configs.kinds.auth import AUTH
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.kinds.products import PRODUCTS, Product
from storage.configs.kinds.urls import SANDBOX, resolve_url
from streams.wire.errors import AppNotFound, ConfigInvalid
from streams.wire.ids import new_id
from streams.wire.model import Model

_SYMMETRIC = "HS256"
_CARD_CONFIG = "Default"
_TOKEN_S = 600


class SoldQuery(Model):
    app: str = DEFAULT_APP
    """The app whose products are sold."""


class SoldProduct(Model):
    """A product, and the ways to pay for it."""

    product_id: str
    title: str
    type: str
    period: str
    """The period of a subscription, such as `P1M`. Empty for other products."""
    price: str
    """Such as `1.99 USD`. Empty if the platform has the price."""
    amount: int
    """The price in minor units, such as cents. 0 if the platform has it."""
    currency: str
    by_wallet: bool
    by_card: bool


class SoldProducts(Model):
    """The products, and where their cards are confirmed."""

    products: list[SoldProduct]
    card_page_url: str
    """The sandbox's page for paying with a card. Empty if card payments do not go to the sandbox."""


class ServerTokenBody(Model):
    app: str = DEFAULT_APP


class ServerTokenReply(Model):
    """The token."""

    token: str
    """A value of `X-Service-Auth-Token`, valid once, for at most 10 minutes."""


async def list_products(call: Call, query: Query[SoldQuery]) -> SoldProducts:
    """List the products on the payments page.

    Only development servers have this endpoint.
    """
    services, app_id = call.services, require_app(call.services, query.app)
    found = []
    for name in services.configs.names(PRODUCTS, app_id):
        with suppress(ConfigInvalid):  # It cannot be bought.
            found.append(_sold(name, services.configs.required(PRODUCTS, app_id, name).value))
    return SoldProducts(products=found, card_page_url=_card_page(call, app_id))


def _sold(name: str, product: Product) -> SoldProduct:
    price, is_subscription = product.price, product.type == "subscription"
    return SoldProduct(
        product_id=name,
        title=product.label,
        type=product.type,
        period=product.period or "",
        price="" if price is None else str(price.money),
        amount=0 if price is None else price.amount,
        currency="" if price is None else price.currency,
        by_wallet=product.walletpay is not None and (is_subscription or price is not None),
        by_card=price is not None and not is_subscription,
    )


def _card_page(call: Call, app_id: str) -> str:
    with suppress(ConfigInvalid):
        base_url = call.services.configs.required(CARDPAY, app_id, _CARD_CONFIG).value.base_url or ""
        url = resolve_url(base_url, sandbox_url=call.services.settings.sandbox_url)
        if url and base_url.startswith(SANDBOX):
            return f"{url}/pay"
    return ""


async def make_token(call: Call, body: Body[ServerTokenBody]) -> ServerTokenReply:
    """Make a token of the app's own server.

    It is signed with the first key of the app that has a shared secret, and can be used once. Only development
    servers have this endpoint.
    """
    app_id = require_app(call.services, body.app)
    config = call.services.configs.singleton(AUTH, app_id)
    for key in config.server_keys:
        if key.secret is not None:
            secret = key.secret.get_secret_value()
            token = make_server_token(
                kid=key.kid, alg=_SYMMETRIC, key=secret, app_id=app_id, audience=config.server_audience,
                ttl_s=min(_TOKEN_S, config.server_token_max_s), jti=new_id(),
            )  # fmt: skip
            return ServerTokenReply(token=token)
    raise ConfigInvalid("auth default: no server key has the algorithm HS256")


_TOKEN = Docs(bodies={"The development app": {"app": "default"}})

DEV_PAYMENT_ROUTES = [
    Endpoint("GET", "/dev/payments/products", list_products, DEVELOPMENT, errors=(AppNotFound,)),
    Endpoint(
        "POST", "/dev/server-token", make_token, DEVELOPMENT, errors=(AppNotFound, ConfigInvalid), docs=_TOKEN
    ),
]
