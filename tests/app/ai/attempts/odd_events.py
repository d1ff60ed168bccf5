"""Events of language models for keys of the sandbox, and what a client was told."""

from collections.abc import Sequence
from typing import Any

from streams.wire.codec import dumps
from tests.peers.sse_client import SeenEvent, named


def event(**value: Any) -> str:
    return f"data: {dumps(value).decode()}\n\n"


def delta(content: Any, reason: Any = None) -> str:
    return event(choices=[{"index": 0, "delta": {"content": content}, "finish_reason": reason}])


def candidate(text: Any, reason: str | None = "STOP", **part: Any) -> str:
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 2}
    content = {"parts": [{"text": text, **part}], "role": "model"}
    reasons = {"finishReason": reason} if reason else {}
    return event(candidates=[{"content": content, **reasons}], usageMetadata=usage)


def block(text: Any, kind: str = "text") -> str:
    return event(type="content_block_delta", index=0, delta={"type": f"{kind}_delta", kind: text})


STOPPED = event(type="message_delta", delta={"stop_reason": "end_turn"}, usage=None)
END = delta("", "stop")
DONE = "data: [DONE]\n\n"


def said_by(seen: Sequence[SeenEvent]) -> str:
    """Return the text that the client has after the last restart."""
    restarts = [number for number, event in enumerate(seen) if event.name == "assistant_output_restart"]
    return "".join(chunk["text"] for chunk in named(seen[max(restarts, default=0) :], "assistant_output_chunk"))
