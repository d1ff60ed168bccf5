"""16-bit samples out of pieces that end anywhere. Pure."""


class Samples:
    """Keeps the odd byte back until the rest of its sample has come; one that is left at the end is no sound."""

    def __init__(self) -> None:
        self._carry = b""

    def whole(self, piece: bytes) -> bytes:
        """The whole samples that are there now."""
        pcm = self._carry + piece
        end = len(pcm) // 2 * 2
        self._carry = pcm[end:]
        return pcm[:end]
