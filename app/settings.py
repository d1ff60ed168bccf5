"""What the environment says, read once. No other module of the server looks there."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Literal, Self

from pydantic import SecretStr

_LAST_PORT = 65_535
_DIGITS = 9
DEFAULT_SECRETS = frozenset({"", "change-me", "secret", "development"})


class SettingsError(SystemExit):
    """A fault in the environment: the process says it in one line and ends."""


@dataclass(frozen=True, slots=True)
class Settings:
    database_url: str
    redis_url: str
    master_key: SecretStr
    """Hexadecimal, 32 bytes: encrypts what configs hold in secret, and signs the links of files."""
    admin_token: SecretStr
    env: Literal["development", "production"] = "production"
    host: str = "127.0.0.1"
    port: int = 8080
    processes: int = 1
    public_url: str = "http://127.0.0.1:8080"
    metrics_port: int | None = None
    data_dir: Path = Path(".parley")
    redis_prefix: str = "parley:"
    local_url: str | None = None
    """Where `python -m vendors.local` listens: the base URL of local accounts that name none."""
    drain_timeout_s: float = 60
    log_level: str = "info"
    s3_bucket: str | None = None
    s3_endpoint_url: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    """Networks in CIDR form whose `X-Forwarded-For` is believed."""

    @property
    def development(self) -> bool:
        return self.env == "development"

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Self:
        """Read the environment; `SettingsError` names what is missing or wrong, never a secret."""
        read = _Reader(os.environ if env is None else env)  # noqa: TID251 - the one reader
        mode = read.text("PARLEY_ENV", "production")
        if mode not in {"development", "production"}:
            raise SettingsError("parley: PARLEY_ENV must be development or production")
        port = read.number("PORT", 8080, least=1, most=_LAST_PORT)
        host = read.text("HOST", "127.0.0.1")
        return cls(
            database_url=read.required("DATABASE_URL"),
            redis_url=read.required("REDIS_URL"),
            master_key=SecretStr(read.master_key()),
            admin_token=SecretStr(read.secret("PARLEY_ADMIN_TOKEN", development=mode == "development")),
            env="development" if mode == "development" else "production",
            host=host,
            port=port,
            processes=read.number("PARLEY_PROCESSES", 1, least=1, most=256),
            public_url=read.text("PARLEY_PUBLIC_URL", f"http://{host}:{port}").rstrip("/"),
            metrics_port=read.optional_number("PARLEY_METRICS_PORT", least=1, most=_LAST_PORT),
            data_dir=Path(read.text("PARLEY_DATA_DIR", ".parley")),
            redis_prefix=read.text("PARLEY_REDIS_PREFIX", "parley:"),
            local_url=read.text("PARLEY_LOCAL_URL", "") or None,
            drain_timeout_s=read.number("PARLEY_DRAIN_TIMEOUT_S", 60),
            log_level=read.text("PARLEY_LOG_LEVEL", "info"),
            s3_bucket=read.text("S3_BUCKET", "") or None,
            s3_endpoint_url=read.text("AWS_ENDPOINT_URL_S3", "") or read.text("AWS_ENDPOINT_URL", "") or None,
            trusted_proxies=read.networks("PARLEY_TRUSTED_PROXIES"),
        )


class _Reader:
    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def text(self, name: str, default: str) -> str:
        return self._env.get(name, "").strip() or default

    def required(self, name: str) -> str:
        value = self.text(name, "")
        if not value:
            raise SettingsError(f"parley: {name} is not set (`make run` sets it for you)")
        return value

    def number(self, name: str, default: int, *, least: int = 0, most: int | None = None) -> int:
        value = self.text(name, str(default))
        if not (value.isdecimal() and len(value) <= _DIGITS):
            raise SettingsError(f"parley: {name} must be a whole number")
        number = int(value)
        if number < least or (most is not None and number > most):
            raise SettingsError(f"parley: {name} must be from {least} to {most}")
        return number

    def optional_number(self, name: str, *, least: int, most: int) -> int | None:
        return self.number(name, 0, least=least, most=most) if self.text(name, "") else None

    def networks(self, name: str) -> tuple[str, ...]:
        values = tuple(part.strip() for part in self.text(name, "").split(",") if part.strip())
        try:
            return tuple(str(ip_network(value)) for value in values)
        except ValueError:
            raise SettingsError(f"parley: {name} must be networks such as 10.0.0.0/8, parted by commas") from None

    def secret(self, name: str, *, development: bool) -> str:
        value = self.required(name)
        if not development and (value in DEFAULT_SECRETS or len(value) < 16):
            raise SettingsError(f"parley: {name} must be a secret of at least 16 characters")
        return value

    def master_key(self) -> str:
        value = self.required("PARLEY_MASTER_KEY")
        try:
            right = len(bytes.fromhex(value)) == 32 and len(set(value)) > 2
        except ValueError:
            right = False
        if not right:
            raise SettingsError("parley: PARLEY_MASTER_KEY must be 32 random bytes in hexadecimal")
        return value
