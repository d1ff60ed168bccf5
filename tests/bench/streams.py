"""Builds event streams as a server would send them."""

from hashlib import sha256
from itertools import pairwise

from streams.wire.codec import dumps


def frame(number: int, name: str, content: object) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (
        number,
        name.encode(),
        dumps({"content": content, "timestamp": 1_795_259_260_884}),
    )


def frames(texts: list[str], last: str = "end") -> list[bytes]:
    """Return the frames of a stream: `start`, a chunk for each text, and `end` with a digest, or `error`."""
    contents: list[tuple[str, object]] = [("start", "start")]
    contents += [("assistant_output_chunk", {"index": 0, "text": text}) for text in texts]
    said = "".join(texts)
    digest = {"chars": len(said), "sha256": sha256(said.encode()).hexdigest()}
    error = {"error_type": "backend_unavailable", "message": "m"}
    contents.append((last, {"digest": digest} if last == "end" else {"error": error}))
    return [frame(number, name, content) for number, (name, content) in enumerate(contents, 1)]


def chunked(parts: list[bytes]) -> bytes:
    """Return an HTTP body with one chunk for each part."""
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in [*parts, b""])


def pieces(raw: bytes, cuts: list[int]) -> list[bytes]:
    """Return `raw` split at these positions."""
    positions = sorted({cut % len(raw) for cut in cuts} | {0, len(raw)})
    return [raw[begin:end] for begin, end in pairwise(positions)]
