"""Reads and checks environment variables. No error repeats a secret."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

from app.trace_settings import invalid_variable
from storage.store_urls import ADVICE, has_unencoded_password
from storage.valkey.addresses import split_hosts

LAST_PORT = 65_535
_DIGITS = 9
_COLLECTOR = "http://127.0.0.1:4318"
_TRACES = "/v1/traces"
_STORE_PORTS = {"postgresql": 5432, "redis": 6379}
_REDIS_DATABASE = re.compile(r"(/[0-9]{0,9})?")
_BUCKET = re.compile(r"[A-Za-z0-9._-]{3,255}|arn:[\x21-\x7e]+")
LOG_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
"""The values of `PARLEY_LOG_LEVEL`, and their numbers in `logging`."""
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
"""Wildcard addresses, and an address at which a server that listens on them can be reached locally."""
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
DEFAULT_SECRETS = frozenset({"", "change-me", "secret", "development"})


_OWN = "PARLEY_"
_SERVICE_LINK = re.compile(
    r"PARLEY_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PORT|PROTO|ADDR))?)"
)
"""Variables that Kubernetes makes for services whose names begin with `parley`."""
_LINKED = ("tcp://", "udp://", "sctp://")
"""How their variables `…_PORT` begin."""


class UnknownVariable(NamedTuple):
    """A variable that begins with `PARLEY_` and that nothing reads."""

    name: str
    nearest: str | None
    """The most similar variable that is read, if one is similar."""


class SettingsError(SystemExit):
    """A missing or invalid setting. The process prints the message and ends."""


class EnvironmentReader:
    """Reads single variables. Each method raises `SettingsError` for an invalid value."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def text(self, name: str, default: str) -> str:
        return self._env.get(name, "").strip() or default

    def required(self, name: str) -> str:
        value = self.text(name, "")
        if not value:
            raise SettingsError(f"parley: {name} is not set (`make run` sets it for you)")
        return value

    def store_url(self, name: str, *schemes: str) -> str:
        """Return the URL of a store, which may name several hosts. No error repeats it: it may hold a password."""
        value = self.required(name)
        if value.partition("://")[0] not in schemes:
            raise SettingsError(f"parley: {name} must be a URL that begins with {schemes[0]}://")
        if has_unencoded_password(value):
            raise SettingsError(f"parley: {name}: {ADVICE}")
        try:
            parts = split_hosts(value)
            hosts = parts.netloc.rpartition("@")[2].split(",")
            valid = all(urlsplit(f"//{host}").port != 0 for host in hosts)
        except ValueError:
            valid = False
        if not valid:
            example = f"{schemes[0]}://user:password@host:{_STORE_PORTS[schemes[0]]}"
            raise SettingsError(
                f"parley: {name} must be a URL such as {example}; write special characters of the password as %XX"
            )
        # redis-py ignores a path that is not a number, and uses the database 0.
        if parts.scheme in {"redis", "rediss"} and not _REDIS_DATABASE.fullmatch(parts.path):
            raise SettingsError(f"parley: {name} must have no path, or the number of a database, such as /0")
        return value

    def optional_store_url(self, name: str, *schemes: str) -> str | None:
        return self.store_url(name, *schemes) if self.text(name, "") else None

    def http_url(self, name: str, *, example: str = "https://parley.example") -> str | None:
        value = self.text(name, "")
        if not value:
            return None
        try:
            parts = urlsplit(value)
            valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
            valid = valid and value.isprintable() and " " not in value
        except ValueError:
            valid = False
        if not valid:
            raise SettingsError(f"parley: {name} must be a URL such as {example}")
        return value

    def bucket(self) -> str | None:
        """Return the name of the bucket, or the ARN of an access point to it."""
        name = self.text("S3_BUCKET", "")
        if name and not _BUCKET.fullmatch(name):
            raise SettingsError("parley: S3_BUCKET must be the name of a bucket: letters, digits, dots and hyphens")
        return name or None

    def s3_endpoint_url(self) -> str | None:
        names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        urls = [self.http_url(name, example="http://127.0.0.1:9000") for name in names]
        return urls[0] or urls[1]

    def public_url(self, *, development: bool) -> str | None:
        """Return the URL at which clients reach the server, which no wildcard address is."""
        url = self.http_url("PARLEY_PUBLIC_URL")
        if url is not None and not development and (host := urlsplit(url).hostname) in _WILDCARDS:
            raise SettingsError(
                f"parley: PARLEY_PUBLIC_URL must be the URL at which clients reach this server, which {host} is not"
            )
        return url

    def sandbox_url(self, *, development: bool) -> str | None:
        """Return the URL of the sandbox. In production it would confirm any identity and any payment."""
        url = self.http_url("PARLEY_SANDBOX_URL", example="http://127.0.0.1:8099")
        if url is not None and not development:
            raise SettingsError("parley: PARLEY_SANDBOX_URL is only for PARLEY_ENV=development")
        return None if url is None else url.rstrip("/")

    def inbox_url(self, *, development: bool) -> str | None:
        """Return the URL of the local inbox, which keeps emails instead of delivering them."""
        value = self.text("PARLEY_INBOX_URL", "")
        if not value:
            return None
        if not development:
            raise SettingsError("parley: PARLEY_INBOX_URL is only for PARLEY_ENV=development")
        try:
            parts = urlsplit(value)
            valid = parts.scheme == "smtp" and bool(parts.hostname) and bool(parts.port)
        except ValueError:
            valid = False
        if not valid:
            raise SettingsError("parley: PARLEY_INBOX_URL must be a URL such as smtp://127.0.0.1:2525")
        return value.rstrip("/")

    def log_level(self) -> str:
        level = self.text("PARLEY_LOG_LEVEL", "info").lower()
        if level not in LOG_LEVELS:
            raise SettingsError(f"parley: PARLEY_LOG_LEVEL must be one of {', '.join(LOG_LEVELS)}")
        return level

    def metrics_port(self, port: int, processes: int) -> int | None:
        first = self.optional_number("PARLEY_METRICS_PORT", minimum=1, maximum=LAST_PORT)
        if first is not None and first <= port < first + processes:
            if processes == 1:
                raise SettingsError("parley: PARLEY_METRICS_PORT must differ from PORT")
            raise SettingsError(
                f"parley: PARLEY_METRICS_PORT: the ports {first}-{first + processes - 1} of the {processes} "
                f"processes must not include PORT, which is {port}"
            )
        return first

    def number(self, name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
        value = self.text(name, str(default))
        if not (value.isdecimal() and len(value) <= _DIGITS):
            raise SettingsError(f"parley: {name} must be a whole number")
        number = int(value)
        if number < minimum or (maximum is not None and number > maximum):
            raise SettingsError(f"parley: {name} must be from {minimum} to {maximum}")
        return number

    def optional_number(self, name: str, *, minimum: int, maximum: int) -> int | None:
        return self.number(name, 0, minimum=minimum, maximum=maximum) if self.text(name, "") else None

    def is_public(self, name: str) -> bool | None:
        match self.text(name, ""):
            case "":
                return None
            case "public":
                return True
            case "private":
                return False
            case _:
                raise SettingsError(f"parley: {name} must be public or private")

    def console(self, public_url: str, *, development: bool) -> bool | None:
        """Return whether the console is served. Its cookie must not be sent in plain text between machines."""
        value = self.text("PARLEY_CONSOLE", "")
        if value not in {"", "on", "off"}:
            raise SettingsError("parley: PARLEY_CONSOLE must be on or off")
        parts = urlsplit(public_url)
        is_private = parts.scheme == "https" or parts.hostname in _LOOPBACK
        if value == "on" and not development and not is_private:
            raise SettingsError("parley: PARLEY_CONSOLE=on needs a PARLEY_PUBLIC_URL that begins with https://")
        return None if not value else value == "on"

    def traces_url(self) -> str | None:
        """Return the URL for traces from OpenTelemetry's variables, or `None` if none is set.

        A variable for traces has the complete URL; the variable for all signals has a base URL.
        """
        if self.text("OTEL_SDK_DISABLED", "").lower() == "true":
            return None
        url = self.http_url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", example=f"{_COLLECTOR}{_TRACES}")
        base = self.http_url("OTEL_EXPORTER_OTLP_ENDPOINT", example=_COLLECTOR)
        if url is None and base is None:
            return None
        if (invalid := invalid_variable(self._env)) is not None:
            raise SettingsError(f"parley: {invalid}")
        return url or f"{(base or '').rstrip('/')}{_TRACES}"

    def networks(self, name: str) -> tuple[str, ...]:
        values = tuple(part.strip() for part in self.text(name, "").split(",") if part.strip())
        try:
            return tuple(str(ip_network(value)) for value in values)
        except ValueError:
            raise SettingsError(f"parley: {name} must be comma-separated networks such as 10.0.0.0/8") from None

    def servers(self, name: str, *, port: int) -> tuple[tuple[str, int], ...]:
        """Parse comma-separated IP addresses with optional ports; the default is `port`.

        An IPv6 address with a port must be in brackets.
        """
        values = [part.strip() for part in self.text(name, "").split(",") if part.strip()]
        try:
            return tuple(_server(value, port) for value in values)
        except ValueError:
            message = f"parley: {name} must be comma-separated IP addresses such as 10.0.0.2 or 10.0.0.2:5353"
            raise SettingsError(message) from None

    def proxies(self) -> tuple[str, ...]:
        names = (f"{scheme}_proxy" for scheme in ("http", "https", "all"))
        return tuple(name for lower in names for name in (lower, lower.upper()) if self.text(name, ""))

    def unknown(self, known: Collection[str]) -> tuple[UnknownVariable, ...]:
        """Return the variables that look like settings, but are not among `known`."""
        bare = {name.removeprefix(_OWN): name for name in known}
        return tuple(
            UnknownVariable(name, bare[similar[0]] if similar else None)
            for name, value in sorted(self._env.items())
            if name.startswith(_OWN) and name not in known
            if not _SERVICE_LINK.fullmatch(name) and not value.startswith(_LINKED)
            for similar in [get_close_matches(name.removeprefix(_OWN), bare, n=1)]
        )

    def secret(self, name: str, *, development: bool) -> str:
        value = self.required(name)
        if not development and (value in DEFAULT_SECRETS or len(value) < 16):
            raise SettingsError(f"parley: {name} must be a secret of at least 16 characters")
        return value

    def master_key(self) -> str:
        """Return one key, or several comma-separated ones: the first encrypts, all of them decrypt."""
        keys = [key.strip() for key in self.required("PARLEY_MASTER_KEY").split(",")]
        if not all(map(_is_master_key, keys)):
            raise SettingsError("parley: PARLEY_MASTER_KEY must be 32 random bytes in hexadecimal")
        return ",".join(keys)


def _is_master_key(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == 32 and len(set(text)) > 2
    except ValueError:
        return False


def own_url(host: str, port: int) -> str:
    """Return the URL at which this machine reaches a server that listens on an address."""
    host = _WILDCARDS.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _server(value: str, port: int) -> tuple[str, int]:
    host, colon, port_text = value.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        host, port_text = value, str(port)
    number = int(port_text)
    if not 0 < number <= LAST_PORT:
        raise ValueError
    return str(ip_address(host.removeprefix("[").removesuffix("]"))), number
