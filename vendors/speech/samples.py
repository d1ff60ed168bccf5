"""Splits a byte stream into complete 16-bit samples. Does no I/O."""


class Samples:
    """Keeps an odd byte back until the other half of its sample arrives. One left at the end is dropped."""

    def __init__(self) -> None:
        self._carry = b""

    def feed(self, piece: bytes) -> bytes:
        """Add `piece` and return the samples that are complete."""
        pcm = self._carry + piece
        end = len(pcm) // 2 * 2
        self._carry = pcm[end:]
        return pcm[:end]
