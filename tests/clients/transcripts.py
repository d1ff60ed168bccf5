"""The streams of `tests/transcripts`, as a server sends them, and what a client must see of them.

Each piece of a stream has a value in place of what varies, and the digest is the right one.
"""

import base64
import re
from dataclasses import dataclass
from typing import Any

from streams.wire.codec import loads
from tests.code.source_files import ROOT

_FOLDER = ROOT / "tests" / "transcripts"
_EVENT = re.compile(r"event: (\w+)\ndata: (.*)\n\n")
_VALUES = {"latency_ms": {"total": 1}, "elapsed_ms": 1, "audio": base64.b64encode(b"audio \xff").decode()}
"""What stands for the places that vary, if it is no text."""
_PREFIX = "assistant_output_"


@dataclass(frozen=True)
class Transcript:
    name: str
    events: list[tuple[int, str, Any]]

    @property
    def is_speech(self) -> bool:
        return any(name == "audio_chunk" for _, name, _ in self.events)

    def seen(self) -> list[Any]:
        """Return what a client must see of its events, other than an error."""
        return [view(name, content) for _, name, content in self.events if name != "error"]

    def error(self) -> dict[str, Any] | None:
        *_, (_, name, content) = self.events
        return content["error"] if name == "error" else None


def transcripts() -> list[Transcript]:
    return [Transcript(path.stem, _events(path.read_text())) for path in sorted(_FOLDER.glob("*.sse"))]


def _events(text: str) -> list[tuple[int, str, Any]]:
    found = _EVENT.findall(text)
    assert len(found) == text.count("event: ")
    return [(number, name, _filled(loads(data))) for number, (name, data) in enumerate(found, 1)]


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: None if name == "digest" else _filled(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner) for inner in value]
    if isinstance(value, str) and re.fullmatch("<.*>", value):
        return _VALUES.get(value[1:-1], value[1:-1])
    return value


def view(name: str, content: Any) -> list[Any]:
    """Return what matters of an event. Conversations and speech have different names for audio."""
    short = name.removeprefix(_PREFIX)
    match short:
        case "chunk" | "content_segment":
            return [short, content["index"], content["text"]]
        case "audio_chunk":
            return [short, content["audio"], content.get("mime_type"), content.get("sample_rate")]
        case "audio":
            return [short, content["audio_url"], content.get("mime_type")]
        case "end":
            return [short, content["finish_reason"], content["strategy"]]
        case _:
            return [short, content]
