"""The arguments of vendor clients: the account, and the settings of the strategy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from streams.wire.model import Model
from vendors.http.http1.errors import BadAddress
from vendors.http.http1.request import parse_url

_NOT_IN_HEADERS = frozenset("\r\n\0")


@dataclass(frozen=True, slots=True)
class Account:
    """A vendor account. `name` is the name of its config; `base_url` has no trailing slash.

    `refused` are optional fields of requests that its server has refused, and that are left out from then on.
    """

    name: str
    platform: str
    base_url: str
    api_key: SecretStr | None = None
    concurrency: int = 200
    stream_options: bool = True
    refused: set[str] = field(default_factory=set, compare=False)

    def url(self, path: str) -> str:
        return self.base_url + path

    def is_at(self, domain: str) -> bool:
        """Return whether calls go to a host of `domain`."""
        host = urlsplit(self.base_url).hostname or ""
        return host == domain or host.endswith(f".{domain}")

    def bearer(self) -> dict[str, str]:
        """Return the `Authorization` header, or no header if the account has no key (local servers)."""
        key = self.api_key.get_secret_value() if self.api_key else ""
        return {"Authorization": f"Bearer {key}"} if key else {}


def fits_header(key: SecretStr) -> SecretStr:
    """Validate that `key` can be sent in an HTTP header."""
    if not _NOT_IN_HEADERS.isdisjoint(key.get_secret_value()):
        raise ValueError("must not contain a line break or NUL")
    return key


def _fits_http(url: str) -> str:
    """Validate that calls can be sent to `url`, in which `{service}` stands for a part of the host name."""
    try:
        parse_url(url.replace("{service}", "service"))
    except BadAddress as error:
        raise ValueError(f"cannot be called: {error}") from None
    return url


BaseUrl = Annotated[str, AfterValidator(_fits_http)]


class KeyAccount(Model):
    """The fields of an account that are validated for its platform when it is written."""

    base_url: BaseUrl | None = None
    api_key: Annotated[SecretStr, AfterValidator(fits_header)] | None = None


class AddressedAccount(KeyAccount):
    """An account of a platform that has no default `base_url`."""

    base_url: BaseUrl


@dataclass(frozen=True, slots=True)
class ChatSpec:
    """Settings of a chat strategy.

    `options` are validated by the `Options` model of the client, as in every spec.
    """

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    connect_s: float = 5
    max_tokens: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class RecognitionSpec:
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    connect_s: float = 5
    language_code: str = "en"
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class AssessmentSpec:
    model: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    connect_s: float = 5


@dataclass(frozen=True, slots=True)
class SpeechSpec:
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    connect_s: float = 5
    voice: str = ""
    speed: float = 1.0
    prompt: str = ""
    language_code: str | None = None
    audio_format: Literal["mp3", "wav"] = "mp3"
    need_viseme: bool = False
