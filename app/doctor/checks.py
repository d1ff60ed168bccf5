"""Runs the checks and collects their findings."""

import asyncio
import platform
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import groupby

import structlog

from app.doctor import (
    database,
    machine,
    mail,
    objects,
    outside,
    postgres,
    proxy,
    secrets,
    senders,
    valkey,
    vendors,
    webhooks,
)
from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from app.environment import SettingsError
from app.stores import open_stores
from storage.operators import doctor_reports
from storage.operators.doctor_reports import Finding, Report
from storage.valkey.client import VALKEY_ERRORS
from storage.valkey.opening import open_valkey
from streams.wire.codec import rfc3339
from streams.wire.errors import ServiceError, StoreError

log = structlog.get_logger()

Check = Callable[[Surroundings], AsyncIterator[Finding]]

CHECKS: dict[str, Check] = {
    "postgres": postgres.check,
    "valkey": valkey.check,
    "machine": machine.check,
    "database": database.check,
    "secrets": secrets.check,
    "objects": objects.check,
    "vendors": vendors.check,
    "mail": mail.check,
    "senders": senders.check,
    "outside": outside.check,
    "webhooks": webhooks.check,
    "proxy": proxy.check,
}
"""The checks by the names of `--only`, in the order of the report."""
_MEASURES = {"postgres", "valkey", "proxy"}
"""Checks that measure times. Each runs alone, because others keep the process busy."""
_WITHIN_S = 60


async def examine(here: Surroundings, *, only: Collection[str] = ()) -> Report:
    """Run all checks, or only those that are named, and return their findings."""
    began = here.now
    chosen = [(name, check) for name, check in CHECKS.items() if not only or name in only]
    found: list[list[Finding]] = []
    async with AsyncExitStack() as stack:
        here = await _with_configs(here, stack)
        for _, group in groupby(chosen, lambda named: named[0] if named[0] in _MEASURES else None):
            found += await asyncio.gather(*(_run(name, check, here) for name, check in group))
    return Report(
        checked_at=rfc3339(began),
        host=platform.node(),
        public_url=here.settings.public_url,
        findings=[finding for findings in found for finding in findings],
    )


async def _with_configs(here: Surroundings, stack: AsyncExitStack) -> Surroundings:
    """Open the configs until `stack` is closed, even with a master key that decrypts only some of them, or none."""
    try:
        try:
            stores = await stack.enter_async_context(open_stores(here.settings))
        except SettingsError:
            here = replace(here, wrong_master_key=True)
            stores = await stack.enter_async_context(open_stores(here.settings, with_any_key=True))
        return replace(here, configs=stores.configs)
    except (ServiceError, OSError) as error:
        return replace(here, unread=str(error))


async def _run(name: str, check: Check, here: Surroundings) -> list[Finding]:
    found: list[Finding] = []
    try:
        async with asyncio.timeout(_WITHIN_S):
            async for finding in check(here):
                found.append(finding)  # noqa: PERF401 - what was found before an error is kept
    except TimeoutError:
        found.append(_unfinished(name, f"it has not ended within {_WITHIN_S} s"))
    except Exception as error:
        log.exception("doctor.check_failed", check=name)
        found.append(_unfinished(name, f"{type(error).__name__}: {error}"))
    return found


def _unfinished(name: str, seen: str) -> Finding:
    return Area(name).broken("check", seen, why="this part was not checked", fix="report a bug if it happens again")


async def store(here: Surroundings, report: Report) -> None:
    """Store the report for the admin API, if Valkey is available."""
    with suppress(StoreError, *VALKEY_ERRORS):
        async with open_valkey(here.settings.redis_url, prefix=here.settings.redis_prefix) as opened:
            await doctor_reports.store(opened, report)
