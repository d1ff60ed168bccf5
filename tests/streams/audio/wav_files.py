"""Builds WAV files from chunks."""

import struct


def wav(*chunks: tuple[bytes, bytes], data: bytes = b"\1\0" * 8) -> bytes:
    body = b"".join(
        name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
        for name, content in (*chunks, (b"data", data))
    )
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body


def fmt(tag: int, channels: int, rate: int, bits: int, *, more: bytes = b"") -> tuple[bytes, bytes]:
    size = channels * bits // 8
    return b"fmt ", struct.pack("<HHIIHH", tag, channels, rate, rate * size, size, bits) + more
