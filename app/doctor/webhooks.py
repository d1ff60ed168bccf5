"""Checks whether platforms can reach the webhooks, by calling each without a signature through the public URL."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

from aiohttp import ClientSession

from app.doctor.findings import Area, error_text
from app.doctor.outside import FAILURES, open_http
from app.doctor.secrets import is_local
from app.doctor.surroundings import Surroundings
from app.doctor.targets import unchecked, usable_configs
from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.kinds.payouts import PAYOUTS
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS
from storage.configs.kinds.walletpay import WALLETPAY
from storage.configs.store import ConfigStore
from storage.operators.doctor_reports import Finding
from streams.wire.codec import loads
from vendors.catalog import CATALOG, IMAGE_HOSTS, MODEL_HOSTS, Capability

AREA = Area("webhooks")
_BY_KIND: dict[ConfigKind[Any], str] = {CARDPAY: "cardpay", WALLETPAY: "walletpay", PAYOUTS: "payouts"}
_BY_HOST: dict[Capability[Any, Any], str] = {MODEL_HOSTS: "model_host", IMAGE_HOSTS: "image_host"}
_NOT_USABLE = {422, 500, 502, 503}


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    for finding in unchecked(AREA, here, [*_BY_KIND, VENDOR_ACCOUNTS]):
        yield finding
    if here.configs is None:
        return
    paths = list(paths_of(here.configs))
    host = urlsplit(here.settings.public_url).hostname or ""
    if paths and is_local(host) and not here.settings.development:
        yield AREA.doubtful(
            "PARLEY_PUBLIC_URL",
            f"{host} is not an address of the Internet",
            why="no platform reaches it, so payments are only found by reading them back, minutes later",
            fix="set it to the URL at which platforms reach the server",
        )
    async with open_http(here) as http:
        for finding in await asyncio.gather(*(_check(http, here.settings.public_url, path) for path in paths)):
            yield finding


def paths_of(configs: ConfigStore) -> Iterator[str]:
    """Yield the path of the webhook of each config that has one."""
    for kind, source in _BY_KIND.items():
        for app_id, name, _ in usable_configs(configs, kind):
            yield _path(source, app_id, name)
    for app_id, name, account in usable_configs(configs, VENDOR_ACCOUNTS):
        for capability, source in _BY_HOST.items():
            if account.platform in capability.vendors and not CATALOG[account.platform].local:
                yield _path(source, app_id, name)


def _path(source: str, app_id: str, config: str) -> str:
    return f"/bp/webhook/{source}/{quote(app_id, safe='')}/{quote(config, safe='')}"


async def _check(http: ClientSession, public_url: str, path: str) -> Finding:
    """Check that Parley itself refuses a call without a signature."""
    try:
        async with http.post(public_url + path, data=b"{}", allow_redirects=False) as response:
            status, raw = response.status, await response.read()
            is_ours = "X-Request-Id" in response.headers
        error = _error(raw)
    except FAILURES as failure:
        status, is_ours, error = 0, False, {"message": error_text(failure)}
    if is_ours and error.get("error_type") in {"invalid_parameter", "auth_failed"}:
        return AREA.good(path, "it is reached, and refuses calls without a signature")
    if is_ours and status in _NOT_USABLE:
        return AREA.doubtful(
            path,
            f"it is reached, but {error.get('message', '')}",
            why="webhooks of the platform cannot be verified, so it sends them again and again",
            fix="correct the config of the platform, or the way to it",
        )
    return AREA.broken(
        path,
        f"{status or 'no answer'}: {error.get('message', 'not an answer of Parley')}",
        why="webhooks of the platform are lost; payments are only found by reading them back, minutes later",
        fix="let the proxy pass POST requests under /bp/webhook/ unchanged, without a login or a redirect",
    )


def _error(raw: bytes) -> dict[str, Any]:
    try:
        found = loads(raw)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
