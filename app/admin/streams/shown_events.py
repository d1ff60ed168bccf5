"""The events of a stream as operators see them: what and when they are, and for some operators what they say."""

from typing import Any

from streams.wire.codec import dumps, loads


class ShownEvents:
    """Converts frames of a stream to frames of one for operators. Only those `with_content` have what users say."""

    def __init__(self, *, with_content: bool) -> None:
        self._with_content = with_content
        self._rest = b""
        """The beginning of a frame that has arrived in part."""

    def feed(self, frames: bytes) -> bytes:
        """Return the frames for the operator that are complete now."""
        *whole, self._rest = (self._rest + frames).split(b"\n\n")
        return b"".join(b"data: %b\n\n" % dumps(self._shown(frame)) for frame in whole)

    def _shown(self, frame: bytes) -> dict[str, Any]:
        fields = dict(line.split(b": ", 1) for line in frame.split(b"\n"))
        data = loads(fields[b"data"])
        shown: dict[str, Any] = {
            "name": fields[b"event"].decode(),
            "at_ms": data["timestamp"],
            "bytes": len(frame) + 2,
        }
        if b"id" in fields:
            shown["id"] = int(fields[b"id"])
        if self._with_content:
            shown["content"] = _without_audio(data["content"])
        return shown


def _without_audio(content: Any) -> Any:
    if isinstance(content, dict) and isinstance(audio := content.get("audio"), str):
        return {**content, "audio": f"{len(audio) * 3 // 4} bytes"}
    return content
