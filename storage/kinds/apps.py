"""Kind `apps`: an app that this deployment serves. It exists while this config does."""

from pydantic import Field

from storage.kinds.base import ConfigKind
from streams.wire.model import Model


class Cors(Model):
    origins: list[str] = Field(default_factory=list, max_length=100)
    """Origins of web pages that may call, such as `https://example.com`; `*` for any."""


class App(Model):
    title: str = ""
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")
    """Of every price in the app's configs."""
    cors: Cors = Cors()
    playground: bool | None = None
    """Whether `/` is a page to try the app out, and its users may list its strategies; absent: in development."""


APPS = ConfigKind("apps", "App", App, singleton=True)
