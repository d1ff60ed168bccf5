"""The frames of OpenAI's chat completions, whole and streamed."""

from collections.abc import Mapping
from secrets import token_hex
from time import time
from typing import Any

from vendors.sandbox.openai_dialect import event


class Completion:
    """One answer of one model: what all its frames have in common."""

    def __init__(self, model: str, *, include_usage: bool = False) -> None:
        self._head = {
            "id": f"chatcmpl-{token_hex(12)}",
            "created": int(time()),
            "model": model,
            "service_tier": "default",
            "system_fingerprint": "fp_sandbox",
        }
        self._more: dict[str, Any] = {"usage": None} if include_usage else {}

    def chunk(self, delta: Mapping[str, Any], *, finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self.chunk_of([choice], **more)

    def chunk_of(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return event({**self._head, "object": "chat.completion.chunk", "choices": choices, **self._more, **more})

    def usage_chunk(self, billed: Mapping[str, float]) -> bytes:
        return self.chunk_of([], usage=usage(billed))

    def whole(
        self, message: Mapping[str, Any], billed: Mapping[str, float], *, finish_reason: str
    ) -> dict[str, Any]:
        told = {"role": "assistant", "content": None, "refusal": None, "annotations": [], **message}
        choice = {"index": 0, "message": told, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage(billed)}


def usage(billed: Mapping[str, float]) -> dict[str, Any]:
    """Of a chat; a word is a token."""
    taken, said, spoken = (billed.get(unit, 0) for unit in ("input_tokens", "output_tokens", "audio_tokens"))
    return {
        "prompt_tokens": taken,
        "completion_tokens": said + spoken,
        "total_tokens": taken + said + spoken,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": spoken,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
