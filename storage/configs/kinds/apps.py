"""Kind `apps`: an app that this deployment serves. The app exists as long as this config exists."""

from typing import Annotated

from pydantic import AfterValidator, Field

from storage.configs.kinds.base import ConfigKind
from streams.wire.lines import is_line
from streams.wire.model import Matches, Model
from streams.wire.money import UpperCase


def _are_different(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("must not contain a name twice")
    return names


def _on_one_line(title: str) -> str:
    """Repair a title, as YAML ends a block of text with a line break. Emails have it in their headings."""
    return " ".join("".join(char if is_line(char) else " " for char in title).split())


class Cors(Model):
    origins: list[str] = Field(default_factory=list, max_length=100)
    """Origins of web pages that may call the app, such as `https://example.com`. `*` allows any origin."""


class App(Model):
    title: Annotated[str, AfterValidator(_on_one_line)] = ""
    """The name of the app, which its pages and emails show. Line breaks become blanks."""
    currency: Annotated[str, Matches(r"^[A-Za-z]{3}$", "must be three letters, as in USD"), UpperCase] = "USD"
    """Currency of all prices in the app's configs, as an ISO 4217 code in either case."""
    cors: Cors = Cors()
    """Which web pages may call the app."""
    playground: bool | None = None
    """Whether `/` serves a page to try out the app, and users may list its strategies.
    Default: in development only."""
    strategy_order: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=64)]], AfterValidator(_are_different)
    ] = Field(
        default_factory=list,
        max_length=100,
        title="Order of strategies",
        # No `Ref`, because strategies are imported after their app, so that each of these names would be a warning.
        json_schema_extra={"x-config-kinds": ["conversation", "speech"]},
    )
    """Names of kinds `conversation` and `speech`. Strategies that a request names are tried in this order. Names
    that are missing here follow, in the order of the request. Empty: the order of the request."""


APPS = ConfigKind("apps", "App", App, singleton=True)
