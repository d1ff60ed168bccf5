"""Counts and logs commands that Valkey refused, so that an error of a script does not look like a lost Valkey."""

import re
import time

import structlog
from redis.exceptions import ClusterCrossSlotError, CrossSlotTransactionError

from storage.valkey.causes import CROSSED_SLOTS
from streams.metrics import CounterMetric

log = structlog.get_logger()

REFUSED = CounterMetric(
    "parley_valkey_commands_refused",
    "Commands that Valkey refused although it was available, by the first word of its error",
    ["error"],
)
_LOG_AGAIN_S = 10.0
_WORD = re.compile(r"[A-Z]{2,20}")
_last_logged: dict[str, float] = {}
"""When the last error with a word was logged, by the monotonic clock."""


def record_refusal(error: Exception) -> None:
    """Count an error. Of those with the same first word, one is logged every ten seconds."""
    word = _word_of(error)
    REFUSED.add(1, word)
    now = time.monotonic()
    if now - _last_logged.get(word, -_LOG_AGAIN_S) >= _LOG_AGAIN_S:
        _last_logged[word] = now
        log.error("valkey.command_refused", error=str(error), kind=type(error).__name__)


def _word_of(error: Exception) -> str:
    """Return the first word of Valkey's error. redis-py removes it, or refuses a command before Valkey does."""
    if isinstance(error, (ClusterCrossSlotError, CrossSlotTransactionError)) or CROSSED_SLOTS in str(error):
        return "CROSSSLOT"
    first = str(error).partition(" ")[0]
    return first if _WORD.fullmatch(first) else "ERR"
