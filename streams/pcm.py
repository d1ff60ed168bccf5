"""PCM as it arrives: another format is told on its first bytes, silence and clipping at the end. Pure."""

from streams.audio import PCM, SNIFF_BYTES, WAV, WAV_HEAD_BYTES, parse_wav, pcm_seconds, sniff
from streams.wire.errors import InvalidParameter

LEAST_S = 0.3
"""Shorter audio is refused; so long are the windows in which sound is looked for."""

_BITS = 16
_MAGIC_BYTES = 12
"""So many hold every magic but that of MP3: from there on a type that was found stays."""
_WAV_BYTES = 44
_QUIET = b"\x00\xff"
"""The high bytes of samples below 1/128 of full scale."""
_AT_FULL_SCALE = (0x7F, 0x80)
"""Those of samples in the last 1/128 below it."""


class PcmDecoder:
    """Takes 16-bit mono samples of one rate, raw or behind the WAV header of just that; gives whole samples alone.

    Any split of the same bytes gives the same samples, and the same fault. `sample_rate` is in Hz.
    """

    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self._head: bytearray | None = bytearray()
        """What came before it is known where the samples begin."""
        self._parse_from = _WAV_BYTES
        self._left: int | None = None
        """Bytes of samples that a WAV still announces; what follows them is no audio."""
        self._half = b""
        self._count = 0
        self._first_sound: int | None = None
        self._at_full_scale = 0

    @property
    def audible(self) -> bool:
        """Whether a whole window of `LEAST_S` is there that is not silent."""
        if self._first_sound is None:
            return False
        window = round(LEAST_S * self._sample_rate)
        return self._count >= (self._first_sound // window + 1) * window

    def feed(self, piece: bytes) -> bytes:
        """The samples in `piece`; `InvalidParameter` as soon as it is no such audio."""
        if self._head is not None:
            self._head += piece
            piece = self._begun(self._head, at_end=False)
        return self._samples(piece)

    def finish(self) -> bytes:
        """What was held back; `InvalidParameter` where the audio as a whole cannot be meant."""
        rest = b""
        if self._head is not None:
            if not self._head:
                raise InvalidParameter("audio is required")
            rest = self._samples(self._begun(self._head, at_end=True))
        if pcm_seconds(2 * self._count, self._sample_rate) < LEAST_S:
            raise InvalidParameter("audio is too short")
        if self._half:
            raise InvalidParameter("audio ends in the middle of a sample")
        if self._first_sound is None:
            raise InvalidParameter("audio is silent throughout")
        if 2 * self._at_full_scale > self._count:
            raise InvalidParameter("audio is clipped: over half of its samples are at full scale")
        return rest

    def _begun(self, head: bytearray, *, at_end: bool) -> bytes:
        """What of `head` are samples, once that is known."""
        if len(head) < _MAGIC_BYTES and not at_end:
            return b""
        mime_type = sniff(bytes(head[:SNIFF_BYTES]))
        if mime_type == WAV:
            begin = self._behind_header(head, at_end=at_end)
        elif mime_type is not None:
            raise self._refused(mime_type)
        else:
            begin = 0 if at_end or len(head) >= SNIFF_BYTES else None
        if begin is None:
            return b""
        self._head = None
        return bytes(head[begin:])

    def _behind_header(self, head: bytearray, *, at_end: bool) -> int | None:
        size = len(head)
        if size < self._parse_from and not at_end:
            return None
        self._parse_from = min(2 * size, WAV_HEAD_BYTES)  # not again for every byte of a long header
        try:
            wav = parse_wav(bytes(head[:WAV_HEAD_BYTES]))
        except ValueError as error:
            raise self._refused(f"a WAV that is broken ({error})") from None
        if wav is None:
            if at_end or size >= WAV_HEAD_BYTES:
                raise self._refused("a WAV without samples")
            return None
        told = (wav.format_tag, wav.channels, wav.sample_rate, wav.bits)
        if told != (PCM, 1, self._sample_rate, _BITS):
            kind = "PCM" if wav.format_tag == PCM else f"format {wav.format_tag}"
            channels = "channel" if wav.channels == 1 else "channels"
            raise self._refused(
                f"a WAV of {kind}, {wav.channels} {channels}, {wav.sample_rate} Hz, {wav.bits} bits"
            )
        self._left = wav.data_bytes
        return wav.data_offset

    def _samples(self, piece: bytes) -> bytes:
        if self._left is not None:
            piece = piece[: self._left]
            self._left -= len(piece)
        piece = self._half + piece
        whole = len(piece) // 2 * 2
        self._half = piece[whole:]
        self._listen(piece[1:whole:2])
        return piece[:whole]

    def _listen(self, high: bytes) -> None:
        """Take in samples by their high bytes, which tell loudness in two kinds of search that C does."""
        if self._first_sound is None and (sound := high.lstrip(_QUIET)):
            self._first_sound = self._count + len(high) - len(sound)
        self._count += len(high)
        self._at_full_scale += sum(map(high.count, _AT_FULL_SCALE))

    def _refused(self, what: str) -> InvalidParameter:
        return InvalidParameter(f"audio is {what}: send PCM, {self._sample_rate} Hz, mono, {_BITS} bits")
