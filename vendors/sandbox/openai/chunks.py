"""The messages of OpenAI's chat completions, complete and streamed."""

from collections.abc import Mapping
from secrets import token_hex
from time import time
from typing import Any

from vendors.sandbox.openai.dialect import event


class Completion:
    """Encodes one answer, whose chunks have a common id, time and model."""

    def __init__(self, model: str, *, include_usage: bool = False) -> None:
        self._head = {
            "id": f"chatcmpl-{token_hex(12)}",
            "created": int(time()),
            "model": model,
            "service_tier": "default",
            "system_fingerprint": "fp_sandbox",
        }
        self._extra: dict[str, Any] = {"usage": None} if include_usage else {}

    def chunk(self, delta: Mapping[str, Any], *, finish_reason: str | None = None, **extra: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return self.chunk_of([choice], **extra)

    def chunk_of(self, choices: list[dict[str, Any]], **extra: Any) -> bytes:
        return event({**self._head, "object": "chat.completion.chunk", "choices": choices, **self._extra, **extra})

    def usage_chunk(self, billed: Mapping[str, float]) -> bytes:
        return self.chunk_of([], usage=usage(billed))

    def complete(
        self, message: Mapping[str, Any], billed: Mapping[str, float], *, finish_reason: str
    ) -> dict[str, Any]:
        full_message = {"role": "assistant", "content": None, "refusal": None, "annotations": [], **message}
        choice = {"index": 0, "message": full_message, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage(billed)}


def usage(billed: Mapping[str, float]) -> dict[str, Any]:
    """Return the usage of a chat completion. Every word is one token."""
    prompt_tokens, text_tokens, audio_tokens = (
        billed.get(unit, 0) for unit in ("input_tokens", "output_tokens", "audio_tokens")
    )
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": text_tokens + audio_tokens,
        "total_tokens": prompt_tokens + text_tokens + audio_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": audio_tokens,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
