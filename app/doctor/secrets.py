"""Checks the secrets of this deployment, and whether its configs can be used with them."""

from collections.abc import AsyncIterator, Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from app.doctor.targets import unchecked
from storage.configs.kinds import KINDS
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore
from storage.operators.doctor_reports import Finding

AREA = Area("secrets")
CONFIGS = Area("configs")
_TOKEN_CHARACTERS = 32
_FEW_DIFFERENT = 8
_SHOWN = 20


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    yield _admin_token(here.settings.admin_token.get_secret_value())
    yield _master_key(here)
    yield _environment(here)
    for name, nearest in here.settings.unknown_variables:
        yield _unknown(name, nearest)
    for finding in unchecked(CONFIGS, here, ()) if here.configs is None else _configs(here.configs):
        yield finding


def _admin_token(token: str) -> Finding:
    if len(token) >= _TOKEN_CHARACTERS and len(set(token)) >= _FEW_DIFFERENT:
        return AREA.good("PARLEY_ADMIN_TOKEN", f"{len(token)} characters")
    return AREA.doubtful(
        "PARLEY_ADMIN_TOKEN",
        f"{len(token)} characters, {len(set(token))} of them different",
        why="it includes all rights, and a short one can be guessed",
        fix="replace it by one that `python -m app keys` prints, and restart all processes",
    )


def _master_key(here: Surroundings) -> Finding:
    count = here.settings.master_key.get_secret_value().count(",") + 1
    closed = here.configs.undecryptable() if here.configs is not None else []
    names = ", ".join("/".join(key) for key in closed[:_SHOWN]) + (" …" if len(closed) > _SHOWN else "")
    if here.wrong_master_key:
        return AREA.broken(
            "PARLEY_MASTER_KEY",
            "it lacks the key of this deployment, "
            + (f"which {len(closed)} configs need: {names}" if closed else "which no config needs"),
            why="the server refuses to start, because it could not decrypt what other processes encrypt",
            fix="add the key of before. If it is lost, see docs/operating/secrets.md",
        )
    if closed:
        return AREA.broken(
            "PARLEY_MASTER_KEY",
            f"it lacks the key that {len(closed)} configs need: {names}",
            why="no server process is ready, and requests that need these configs fail",
            fix="add their key, or write their secrets again (docs/operating/secrets.md)",
        )
    if count == 1:
        return AREA.good("PARLEY_MASTER_KEY", "one key")
    return AREA.good("PARLEY_MASTER_KEY", f"{count} keys: the first one encrypts, all of them decrypt")


def _environment(here: Surroundings) -> Finding:
    host = urlsplit(here.settings.public_url).hostname or ""
    if not here.settings.development or is_local(host):
        return AREA.good("PARLEY_ENV", here.settings.env)
    return AREA.broken(
        "PARLEY_ENV",
        f"development, at {here.settings.public_url}",
        why="anybody can read the codes of emails and confirm payments under /dev",
        fix="set PARLEY_ENV=production",
    )


def _unknown(name: str, nearest: str | None) -> Finding:
    return AREA.doubtful(
        name,
        "nothing reads it",
        why="what it should set has its default",
        fix="remove it" if nearest is None else f"correct its name: {nearest}",
    )


def is_local(host: str) -> bool:
    """Return whether only this machine, or its network, reaches `host`."""
    try:
        return ip_address(host).is_private
    except ValueError:
        return host == "localhost" or "." not in host


def _configs(configs: ConfigStore) -> Iterator[Finding]:
    keys = [
        ConfigKey(app_id, kind.name, name)
        for app_id in configs.apps()
        for kind in KINDS.values()
        for name in configs.names(kind, app_id)
    ]
    broken = [(key, fault) for key in keys if (fault := configs.fault(key)) is not None]
    doubtful = [(key, warnings) for key in keys if (warnings := configs.warnings(key))]
    for key, fault in broken[:_SHOWN]:
        yield CONFIGS.broken(
            "/".join(key),
            fault,
            why="requests that need it fail with config_invalid",
            fix="write it again, or add the key that has encrypted its secrets to PARLEY_MASTER_KEY",
        )
    for key, warnings in doubtful[:_SHOWN]:
        yield CONFIGS.doubtful(
            "/".join(key),
            "; ".join(
                f"{warning.path}: {warning.message}" if warning.path else warning.message for warning in warnings
            ),
            why="a probable mistake",
            fix="correct it with `python -m app config import`, the console, or the admin API",
        )
    if not keys:
        yield CONFIGS.doubtful("apps", "there are none", why="all requests get 404", fix="import an app's configs")
    usable = len(keys) - len(broken) - len(doubtful)
    yield CONFIGS.good("usable", f"{usable} of {len(keys)} configs of {len(configs.apps())} apps")
