"""Checks this machine: the limit of open files, free disk space, and settings of its kernel."""

import asyncio
import resource
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from app.doctor.findings import Area
from app.doctor.surroundings import Surroundings
from storage.operators.doctor_reports import Finding

AREA = Area("machine")
_USUAL_FILES = 65_536
_FEW_FILES = 4_096
_GIB = 1 << 30
_DISK_SHARE = 0.1
_FULL_SHARE = 0.02
_MIGRATE = Path("/proc/sys/net/ipv4/tcp_migrate_req")
_BACKLOG = Path("/proc/sys/net/core/somaxconn")
_USUAL_BACKLOG = 4_096


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield _files(hard)
    yield await _disk(here.settings.data_dir)
    if (backlog := _number(_BACKLOG)) is not None:
        yield _listen_backlog(backlog)
    if (migrates := _number(_MIGRATE)) is not None:
        yield AREA.good(
            "tcp_migrate_req",
            f"{migrates} (not needed: the parent process keeps the sockets of processes that it replaces)",
        )


def _files(hard: int) -> Finding:
    unlimited = hard == resource.RLIM_INFINITY
    seen = "no limit" if unlimited else f"{hard} open files per process (of this shell)"
    if unlimited or hard >= _USUAL_FILES:
        return AREA.good("descriptors", seen)
    state = AREA.broken if hard < _FEW_FILES else AREA.doubtful
    return state(
        "descriptors",
        seen,
        why="a stream uses two, and 1,000 are kept free for stores and files: further clients get 503",
        fix=f"set LimitNOFILE={_USUAL_FILES} in the unit, ulimits in the container, or `ulimit -Hn {_USUAL_FILES}`",
    )


async def _disk(folder: Path) -> Finding:
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    usage = await asyncio.to_thread(shutil.disk_usage, place)
    share = usage.free / usage.total if usage.total else 0.0
    seen = f"{usage.free / _GIB:.1f} GiB of {usage.total / _GIB:.1f} GiB are free at {folder}"
    if share >= _DISK_SHARE:
        return AREA.good("disk", seen)
    return (AREA.broken if share < _FULL_SHARE else AREA.doubtful)(
        "disk",
        seen,
        why="when it is full, speech, uploads and exports fail, and so do copies of files of IP locations",
        fix="free space, lower speech_days and task_days in the config limits, or use an S3 bucket",
    )


def _listen_backlog(backlog: int) -> Finding:
    seen = f"net.core.somaxconn = {backlog}"
    if backlog >= _USUAL_BACKLOG:
        return AREA.good("backlog", seen)
    return AREA.doubtful(
        "backlog",
        seen,
        why="when many clients reconnect at the same time, the kernel drops their connections",
        fix=f"sysctl -w net.core.somaxconn={_USUAL_BACKLOG}, also in /etc/sysctl.d",
    )


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
