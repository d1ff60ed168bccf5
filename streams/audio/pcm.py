"""Validate PCM as it arrives: other formats are rejected at their first bytes, silence and clipping at the end."""

from streams.audio.audio import PCM, WavFormat, pcm_seconds
from streams.audio.formats import SNIFF_BYTES, sniff
from streams.audio.signatures import NAMES, WAV, signed_type
from streams.audio.wav_samples import WavSamples
from streams.wire.errors import InvalidParameter

MIN_AUDIO_S = 0.3
"""Shorter audio is rejected. Also the length of the windows that are searched for sound."""

_BITS = 16
_MAGIC_BYTES = 12
"""Enough for the magic bytes of most types. More bytes do not change a type that is found in these."""
_QUIET = b"\x00\xff"
"""The high bytes of samples that count as silence: below 1/128 of full scale."""
_AT_FULL_SCALE = (0x7F, 0x80)
"""The high bytes of samples that count as clipped: within 1/128 of full scale."""


def has_sound(samples: bytes, *, at: int = 0) -> bool:
    """Return whether 16-bit samples contain sound. `at` bytes of them came before these."""
    return bool(samples[1 - at % 2 :: 2].lstrip(_QUIET))


class PcmDecoder:
    """Extract 16-bit mono samples of one rate from raw PCM, or from a WAV file of that format.

    Returns whole samples only. The samples, and the error if there is one, do not depend on how the bytes are
    split. `sample_rate` is in Hz. Errors about other formats continue with `demand` and the expected format.
    """

    def __init__(self, sample_rate: int, *, demand: str = "send") -> None:
        self._sample_rate = sample_rate
        self._demand = demand
        self._head: bytearray | None = bytearray()
        """The bytes received until the start of the samples is known; then `None`."""
        self._wav: WavSamples | None = None
        self._half = b""
        self._count = 0
        self._first_sound: int | None = None
        self._at_full_scale = 0

    @property
    def audible(self) -> bool:
        """Whether a complete window of `MIN_AUDIO_S` that contains sound has arrived."""
        if self._first_sound is None:
            return False
        window = round(MIN_AUDIO_S * self._sample_rate)
        return self._count >= (self._first_sound // window + 1) * window

    def feed(self, piece: bytes) -> bytes:
        """Return the samples in `piece`. Raises `InvalidParameter` as soon as the format turns out to be wrong."""
        if self._head is not None:
            self._head += piece
            piece = self._begin(self._head, at_end=False)
        elif self._wav is not None:
            piece = self._read_wav(self._wav, piece)
        return self._samples(piece)

    def finish(self) -> bytes:
        """Return the samples held back. Raises `InvalidParameter` if the audio is too short, silent or clipped."""
        rest = self.rest()
        if pcm_seconds(2 * self._count, self._sample_rate) < MIN_AUDIO_S:
            raise InvalidParameter("audio is too short")
        if self._half:
            raise InvalidParameter("audio ends in the middle of a sample")
        if self._first_sound is None:
            raise InvalidParameter("audio is silent throughout")
        if 2 * self._at_full_scale > self._count:
            raise InvalidParameter("audio is clipped: over half of its samples are at full scale")
        return rest

    def rest(self) -> bytes:
        """Return the samples held back at the end of the audio. Raises `InvalidParameter` if there are none."""
        rest = b""
        if self._head is not None:
            if not self._head:
                raise InvalidParameter("audio is required")
            rest = self._samples(self._begin(self._head, at_end=True))
        if self._wav is not None and self._wav.format is None:
            raise self._refused("a WAV without samples")
        return rest

    def _begin(self, head: bytearray, *, at_end: bool) -> bytes:
        """Return the part of `head` that is samples, or `b""` while the type is unknown."""
        if at_end or len(head) >= SNIFF_BYTES:
            mime_type = sniff(bytes(head[:SNIFF_BYTES]))
        else:
            mime_type = signed_type(bytes(head[:SNIFF_BYTES])) if len(head) >= _MAGIC_BYTES else None
            if mime_type is None:
                return b""
        if mime_type not in {None, WAV}:
            raise self._refused(NAMES[mime_type])
        self._head = None
        if mime_type is None:
            return bytes(head)
        self._wav = WavSamples()
        return self._read_wav(self._wav, bytes(head))

    def _read_wav(self, file: WavSamples, piece: bytes) -> bytes:
        is_known = file.format is not None
        try:
            samples = file.feed(piece)
        except ValueError as error:
            raise self._refused(f"an invalid WAV file ({error})") from None
        if file.format is not None and not is_known:
            self._check_format(file.format)
        return samples

    def _check_format(self, wav: WavFormat) -> None:
        actual = (wav.format_tag, wav.channels, wav.sample_rate, wav.bits)
        if actual != (PCM, 1, self._sample_rate, _BITS):
            kind = "PCM" if wav.format_tag == PCM else f"format {wav.format_tag}"
            channels = "channel" if wav.channels == 1 else "channels"
            raise self._refused(
                f"a WAV of {kind}, {wav.channels} {channels}, {wav.sample_rate} Hz, {wav.bits} bits"
            )

    def _samples(self, piece: bytes) -> bytes:
        piece = self._half + piece
        end = len(piece) // 2 * 2
        self._half = piece[end:]
        self._analyze(piece[1:end:2])
        return piece[:end]

    def _analyze(self, high: bytes) -> None:
        """Update the sound and clipping statistics from the high bytes of samples.

        The high bytes suffice, and `lstrip` and `count` search them in C.
        """
        if self._first_sound is None and (sound := high.lstrip(_QUIET)):
            self._first_sound = self._count + len(high) - len(sound)
        self._count += len(high)
        self._at_full_scale += sum(map(high.count, _AT_FULL_SCALE))

    def _refused(self, actual: str) -> InvalidParameter:
        wanted = f"{self._demand} PCM, {self._sample_rate} Hz, mono, {_BITS} bits"
        return InvalidParameter(f"audio is {actual}: {wanted}")
