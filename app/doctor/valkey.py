"""Checks Valkey: whether it can be used, its version, latency, memory and clock."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

from redis.asyncio import RedisCluster

from app.doctor.findings import Area
from app.doctor.postgres import clock_finding, latency_finding
from app.doctor.surroundings import Surroundings
from storage.operators.doctor_reports import Finding, State
from storage.valkey.addresses import location
from storage.valkey.client import VALKEY_ERRORS, Valkey, store_error
from storage.valkey.opening import open_valkey
from streams.wire.errors import StoreError
from streams.wire.ids import new_id

AREA = Area("valkey")
_OLDEST_VERSION = 7
_SLOW_MS = 5
_KEPT_S = 10
_KEEPS_ALL = "noeviction"


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    try:
        async with open_valkey(here.settings.redis_url, prefix=here.settings.redis_prefix) as valkey:
            primaries = await _primaries(valkey)
            yield AREA.good("connection", "it accepts connections")
            yield await _writes(valkey)
            yield _worst(map(_version, primaries))
            yield await _latency(valkey)
            yield await _clock(valkey, here)
            yield _worst(map(_eviction, primaries))
            yield _worst(map(_persistence, primaries))
            if valkey.fails_over:
                yield _worst(map(_replicas, primaries))
    except (StoreError, *VALKEY_ERRORS) as error:
        cause = error if isinstance(error, StoreError) else store_error(error)
        yield AREA.broken(
            "connection",
            f"{cause} (REDIS_URL: {location(here.settings.redis_url)})",
            why="streams cannot be resumed, limits are counted per process, and idempotency keys are not checked",
            fix="start Valkey, or correct REDIS_URL",
        )


async def _primaries(valkey: Valkey) -> list[dict[str, Any]]:
    """Return what each primary reports: each of a cluster, or the only one."""
    if len(valkey.groups) == 1:
        return [await valkey.client.info()]
    return list((await valkey.client.info(target_nodes=RedisCluster.PRIMARIES)).values())


def _worst(findings: Iterable[Finding]) -> Finding:
    """Return the first finding that is not good, or else the first one."""
    first, *others = findings
    return next((finding for finding in (first, *others) if finding.state is not State.GOOD), first)


def _replicas(info: dict[str, Any]) -> Finding:
    if int(info["connected_slaves"]):
        return AREA.good("replicas", "each primary has at least one")
    return AREA.doubtful(
        "replicas",
        "a primary has no replica",
        why="if it is lost, its part of the keys is unavailable until it is started again",
        fix="start a replica for each primary",
    )


async def _writes(valkey: Valkey) -> Finding:
    key = valkey.key("doctor", new_id())
    try:
        await valkey.client.set(key, b"probe", ex=_KEPT_S)
        await valkey.client.delete(key)
    except VALKEY_ERRORS as error:
        return AREA.broken(
            "writes",
            f"{store_error(error).what}: {error}",
            why="streams cannot be resumed, and limits are counted per process",
            fix="connect to the primary instead of a replica, free its memory or its disk, and give the user of "
            "REDIS_URL the right to all commands on the keys of PARLEY_REDIS_PREFIX",
        )
    return AREA.good("writes", "it accepts writes")


def _version(info: dict[str, Any]) -> Finding:
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get("valkey_version") or info["redis_version"])
    if int(version.partition(".")[0]) < _OLDEST_VERSION:
        return AREA.broken(
            "version", f"{name} {version}", why=f"scripts need version {_OLDEST_VERSION} or newer", fix="upgrade it"
        )
    return AREA.good("version", f"{name} {version}")


async def _latency(valkey: Valkey) -> Finding:
    return await latency_finding(
        AREA,
        valkey.client.ping,
        store="Valkey",
        slow_ms=_SLOW_MS,
        why="every request waits for it at least once",
    )


async def _clock(valkey: Valkey, here: Surroundings) -> Finding:
    began = here.clock()
    seconds, micros = await valkey.client.time()
    return clock_finding(AREA, seconds + micros / 1_000_000 - (began + here.clock()) / 2)


def _eviction(info: dict[str, Any]) -> Finding:
    policy, limit = str(info.get("maxmemory_policy", _KEEPS_ALL)), int(info.get("maxmemory", 0))
    seen = f"maxmemory-policy {policy}, maxmemory {limit}" + ("" if limit else " (no limit)")
    if policy == _KEEPS_ALL:
        return AREA.good("eviction", seen)
    why = (
        "when its memory is full, it deletes running streams, idempotency keys, and turns that wait for "
        "PostgreSQL, without an error"
    )
    fix = f"set maxmemory-policy {_KEEPS_ALL}"
    return (AREA.broken if limit else AREA.doubtful)("eviction", seen, why=why, fix=fix)


def _persistence(info: dict[str, Any]) -> Finding:
    if info.get("aof_enabled"):
        return AREA.good("persistence", "it keeps an append-only file")
    return AREA.doubtful(
        "persistence",
        "appendonly no",
        why="a restart loses the counters of limits, and turns that wait there while PostgreSQL is unavailable",
        fix="set appendonly yes (appendfsync everysec is enough)",
    )
