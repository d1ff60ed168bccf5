"""Why a model stopped, in the words of all vendors, of the servers that offer their protocols, and of gateways.

One table serves all protocols, because gateways pass on the words of the vendors behind them.
"""

import re
from typing import Any, Literal

from vendors.errors import Refused
from vendors.protocols import FinishReason

Outcome = FinishReason | Literal["broken"]
"""`broken`: the answer was broken off by a failure, so it is not complete."""
_WORDS: dict[Outcome, str] = {
    "stop": "stop stopped complete completed normal end_turn eos eos_token stop_sequence",
    # The limit of the request, or that of the model's context.
    "length": "length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length model_length"
    " token_limit error_limit model_context_window_exceeded context_length_exceeded",
    "content_filter": "content_filter content_filtered sensitive safety refusal recitation language blocklist"
    " prohibited_content spii image_safety model_armor guardrail_intervened moderation error_toxic",
    "broken": "time_limit stalled model_unloaded",
}
_OUTCOMES = {word: outcome for outcome, words in _WORDS.items() for word in words.split()}
_NO_REASON = frozenset({"", "null", "none", "finish_reason_unspecified", "unspecified", "not_finished"})
_BROKEN = re.compile(
    r"error|fail|abort|cancel|time_?d?_?out|interrupt|insufficient|overload|unavailable|exception|disconnect"
    r"|malformed|unexpected|missing|too_many"
)
"""Zhipu: `network_error`; DeepSeek: `insufficient_system_resource`; vLLM: `abort`; Google: `MALFORMED_RESPONSE`."""
_OF_NUMBER: dict[float, Outcome] = {1: "stop", 2: "length", 3: "content_filter", 4: "content_filter"}
"""Google's numbers, which may stand for its words in JSON."""


def outcome_of(reason: Any, *, unknown: Outcome = "stop") -> Outcome | None:
    """Return what a finish reason means, or `None` if it is none. `unknown` is the meaning of other words."""
    if isinstance(reason, list):
        reason = next(iter(reason), None)
    if isinstance(reason, dict):
        reason = reason.get("type")
    if not reason:
        return None
    if not isinstance(reason, str):
        return _OF_NUMBER.get(reason, unknown) if isinstance(reason, int | float) else unknown
    word = _word(reason)
    if word in _NO_REASON:
        return None
    if (outcome := _OUTCOMES.get(word)) is not None:
        return outcome
    return "broken" if _BROKEN.search(word) else unknown


def _word(reason: str) -> str:
    """Return a reason in one spelling: `FinishReason.MAX_TOKENS` and `max-tokens` are `max_tokens`."""
    return reason.strip().rpartition(".")[2].lower().replace("-", "_").replace(" ", "_")


def broken_off(vendor: str, reason: Any) -> Refused:
    """Return the error for a reason that means `broken`."""
    return Refused(vendor, f"broke off its answer: {str(reason)[:64]}", retryable=True)
