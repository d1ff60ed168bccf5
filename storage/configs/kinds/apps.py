"""Kind `apps`: an app that this deployment serves. The app exists as long as this config exists."""

from typing import Annotated

from pydantic import Field

from storage.configs.kinds.base import ConfigKind
from streams.wire.model import Matches, Model
from streams.wire.money import UpperCase


class Cors(Model):
    origins: list[str] = Field(default_factory=list, max_length=100)
    """Origins of web pages that may call the app, such as `https://example.com`. `*` allows any origin."""


class App(Model):
    title: str = ""
    """The name of the app, which its pages show."""
    currency: Annotated[str, Matches(r"^[A-Za-z]{3}$", "must be three letters, as in USD"), UpperCase] = "USD"
    """Currency of all prices in the app's configs, as an ISO 4217 code in either case."""
    cors: Cors = Cors()
    """Which web pages may call the app."""
    playground: bool | None = None
    """Whether `/` serves a page to try out the app, and users may list its strategies.
    Default: in development only."""


APPS = ConfigKind("apps", "App", App, singleton=True)
