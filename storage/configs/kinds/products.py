"""Kind `products`: what users can buy. The name of a config is the service product id."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from storage.configs.kinds.base import ConfigKind, Ref
from storage.configs.kinds.share_groups import MAX_SHARE_QUOTA
from streams.wire.model import Matches, Model
from streams.wire.money import Currency, Money
from streams.wire.period import PeriodText

AssetType = Literal["consumable", "nonconsumable", "subscription"]
MAX_QUANTITY = 1_000_000_000
MAX_AMOUNT = 99_999_999
"""The largest amount that the platforms accept, in minor units."""


Country = Annotated[str, Matches(r"^[A-Z]{2}$", "must be two capital letters (ISO 3166-1 alpha-2)")]
PlatformId = Annotated[
    str, Matches(r"^[!-~]{1,255}$", "must be 1 to 255 printable ASCII characters without spaces")
]
AssetName = Annotated[
    str,
    Matches(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$", "must be 1 to 64 letters, digits, dots, hyphens and underscores"),
]


class LocalPrice(Model):
    amount: int = Field(ge=1, le=MAX_AMOUNT)
    """In minor units of the currency, such as cents."""
    currency: Currency
    """The ISO 4217 code in either case, such as USD."""

    @property
    def money(self) -> Money:
        return Money(self.amount, self.currency)


class ProductPrice(LocalPrice):
    countries: dict[Country, LocalPrice] = Field(default_factory=dict, max_length=250)
    """Prices that differ in a country, by its ISO 3166-1 code."""

    @property
    def all(self) -> list[Money]:
        """The price of most countries comes first."""
        return [self.money, *(price.money for price in self.countries.values())]

    @property
    def places(self) -> dict[Money, list[str]]:
        """The countries of each price, which are none for that of most countries. It comes first."""
        found: dict[Money, list[str]] = {self.money: []}
        for country, price in self.countries.items():
            if price.money != self.money:
                found.setdefault(price.money, []).append(country)
        return found

    def in_country(self, country: str | None) -> Money:
        """Return the price in a country. `None`: it is unknown."""
        return self.countries.get(country or "", self).money


class Trial(Model):
    period: PeriodText
    """How long it lasts, such as `P7D`."""
    amount: int = Field(default=0, ge=0, le=MAX_AMOUNT)
    """Its price in minor units of the product's currency."""


class WalletProduct(Model):
    """A product at the wallet platform."""

    config: Annotated[str, Ref("walletpay")] = "Default"
    """Name of a config of kind `walletpay`."""
    plan_id: PlatformId | None = None
    """The plan of a subscription. One-off orders need none."""
    plans: dict[Country, PlatformId] = Field(default_factory=dict, max_length=250)
    """Plans that differ in a country, by its ISO 3166-1 code."""
    product_id: str = Field(default="", max_length=255)
    """The platform's id of the product."""

    def plan_in_country(self, country: str | None) -> str | None:
        """Return the plan in a country. `None`: it is unknown."""
        return self.plans.get(country or "", self.plan_id)


class CardProduct(Model):
    """A product at the card platform."""

    config: Annotated[str, Ref("cardpay")] = "Default"
    """Name of a config of kind `cardpay`."""
    price_id: PlatformId | None = None
    """The price of a subscription. Other products need none."""


class Product(Model):
    type: AssetType
    """The type of the asset that a purchase grants."""
    asset: AssetName
    """The name of this asset. Products that grant the same asset have the same type."""
    title: str = Field(default="", max_length=127)
    """The name for people. Payers see it on the page of the wallet platform, except for subscriptions, whose plan
    has its own name there. Default: the units and the asset."""
    quantity: int = Field(default=0, ge=0, le=MAX_QUANTITY)
    """The number of units that a purchase grants: of a consumable, or for each period of a subscription."""
    period: PeriodText | None = None
    """The period of a subscription, such as `P1M`."""
    trial: Trial | None = None
    """The period before the first full payment of a subscription."""
    price: ProductPrice | None = None
    """The price. Without it, the product cannot be bought as a one-off purchase. The platform has the price of a
    subscription."""
    walletpay: WalletProduct | None = None
    """The product at the wallet platform. Without it, it cannot be bought there."""
    share_quota: int | None = Field(default=None, ge=0, le=MAX_SHARE_QUOTA)
    """How many users may share a subscription, in place of `quota` of `share_groups`."""
    cardpay: CardProduct | None = None
    """The product at the card platform. Subscriptions need it to be bought with a card."""
    tags: list[Annotated[str, Field(max_length=64)]] = Field(default_factory=list, max_length=50)
    """For apps, which may sort their plans by it."""

    @property
    def label(self) -> str:
        """The name for the payer: the title or, without one, a text such as `100 coins`."""
        return self.title or (f"{self.quantity} {self.asset}" if self.quantity else self.asset)

    @property
    def has_free_trial(self) -> bool:
        return self.trial is not None and not self.trial.amount

    @model_validator(mode="after")
    def _check_type(self) -> "Product":
        if self.type == "subscription":
            if self.period is None:
                raise ValueError("period is required for a subscription")
            return self
        for name in ("period", "trial", "share_quota"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name} is only for subscriptions")
        if self.type == "consumable" and self.quantity == 0:
            raise ValueError("quantity must be at least 1 for a consumable")
        if self.type == "nonconsumable" and self.quantity:
            raise ValueError("quantity is not for nonconsumables")
        return self


PRODUCTS = ConfigKind("products", "Product", Product)
