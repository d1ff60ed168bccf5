"""Why jobs are held: the failure of the last attempt, which is stored together with the outcome of the attempt."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from storage.configs.rows import ConfigKey

WORKER_DIED = "worker_died"
"""The error type of jobs whose workers have died again and again."""
UNKNOWN = "unknown"
"""The error type of jobs that a version without this table has held."""
MESSAGE_CHARACTERS = 500
_CONFIGS = 5
_VARIABLE = re.compile(r"[\w@.:+-]*\d[\w@.:+-]*")
"""A word with a digit: an id, a number, a time. It does not distinguish the reasons of failures."""


_PERSONAL = re.compile(r"[^\s<>()\"',;]+@[^\s<>()\"',;]+|\+\d[\d ()-]{5,}\d")
"""Addresses of emails and phone numbers, which mail servers and vendors repeat in their answers. Operators who may
not read data of users read failures."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of an attempt. It contains no secrets, and no addresses of users."""

    error_type: str
    message: str
    process: str
    """The process that has made the attempt. Empty: it has died."""
    configs: tuple[ConfigKey, ...] = ()
    """The configs that the attempt has read last, the newest at the end."""


def failure(error_type: str, message: str, *, process: str = "", configs: Iterable[ConfigKey] = ()) -> Failure:
    """Return a failure that can be stored: with a short message, without halves of characters and null bytes."""
    text = _PERSONAL.sub("…", message.encode(errors="replace").decode().replace("\0", " "))[:MESSAGE_CHARACTERS]
    return Failure(error_type, text, process, tuple([*configs][-_CONFIGS:]))


def group_of(task: str, error_type: str, message: str) -> str:
    """Return the name of the group of all failures of a kind of job for the same reason."""
    reason = f"{error_type}\n{_VARIABLE.sub('#', message)}"
    return f"{task}.{hashlib.sha256(reason.encode()).hexdigest()[:10]}"


COLUMNS = ("error_type", "message", "error_group", "process", "configs")
REPLACE = "on conflict (job_id) do update set failed_at = now(), " + ", ".join(
    f"{name} = excluded.{name}" for name in COLUMNS
)
"""The end of an insert into `job_failures`, because a job may be held more than once."""


def columns_of(task: str, failed: Failure) -> dict[str, Any]:
    """Return the values of `COLUMNS`."""
    return {
        "error_type": failed.error_type,
        "message": failed.message,
        "error_group": group_of(task, failed.error_type, failed.message),
        "process": failed.process,
        "configs": [[*key] for key in failed.configs],
    }
