"""MPEG Layer III: read frame headers, and join several MP3 files into one playable file."""

import re
from dataclasses import dataclass, field

HEADER_BYTES = 4
MAX_FRAME_BYTES = 1441
"""The largest Layer III frame with a stated bit rate: 320 kbit/s at 32 kHz, padded."""

_MPEG1, _MPEG2 = 3, 2  # Values of the version bits. 0 is MPEG 2.5, 1 is reserved.
_LAYER_3 = 1
_KBPS_1 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KBPS_2 = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = (44_100, 48_000, 32_000)
_ID3V2_BYTES = 10
_ID3V1_BYTES = 128
_START = re.compile(rb"[\xffIT]")  # The first byte of a frame, of "ID3" or of "TAG".


@dataclass(frozen=True, slots=True)
class Mp3Header:
    """The decoded four-byte header of a frame."""

    version: int
    sample_rate: int
    mono: bool
    protected: bool
    frame_bytes: int

    @property
    def samples(self) -> int:
        """Number of samples per channel in the frame."""
        return 1152 if self.version == _MPEG1 else 576

    def continues(self, other: "Mp3Header") -> bool:
        """Return whether both frames can belong to the same audio. Bit rate and channel mode may differ."""
        return (self.version, self.sample_rate) == (other.version, other.sample_rate)


def mp3_header(raw: bytes | bytearray, at: int = 0) -> Mp3Header | None:
    """Return the header at `at`, or `None` if there is no valid Layer III header with a stated bit rate."""
    if len(raw) < at + HEADER_BYTES or raw[at] != 0xFF or raw[at + 1] & 0xE0 != 0xE0:
        return None
    version, layer = raw[at + 1] >> 3 & 3, raw[at + 1] >> 1 & 3
    bit_rate, rate, padding = raw[at + 2] >> 4, raw[at + 2] >> 2 & 3, raw[at + 2] >> 1 & 1
    emphasis = raw[at + 3] & 3
    if version == 1 or layer != _LAYER_3 or bit_rate in {0, 15} or rate == 3 or emphasis == 2:
        return None
    sample_rate = _RATES[rate] >> {_MPEG1: 0, _MPEG2: 1}.get(version, 2)
    kbps, slots = (_KBPS_1, 144_000) if version == _MPEG1 else (_KBPS_2, 72_000)
    return Mp3Header(
        version=version,
        sample_rate=sample_rate,
        mono=raw[at + 3] >> 6 == 3,
        protected=not raw[at + 1] & 1,
        frame_bytes=slots * kbps[bit_rate - 1] // sample_rate + padding,
    )


def id3v2_bytes(raw: bytes | bytearray, at: int = 0) -> int:
    """Return the size of the ID3v2 tag whose ten-byte header is at `at`, or 0 if there is none."""
    head = raw[at : at + _ID3V2_BYTES]
    if len(head) < _ID3V2_BYTES or head[:3] != b"ID3" or 0xFF in head[3:5] or max(head[6:10]) > 0x7F:
        return 0
    size = head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9]
    footer = _ID3V2_BYTES if head[5] & 0x10 else 0
    return _ID3V2_BYTES + size + footer


@dataclass(slots=True)
class Mp3Joiner:
    """Extract the audio frames of consecutive MP3 files, so that they play as one file.

    ID3v2 tags, ID3v1 trailers, the Xing, Info or VBRI frame and foreign bytes between frames are dropped, because
    players may stop at them. The output does not depend on how the input is split. At most one frame and one
    header are held back.
    """

    sample_rate: int | None = None
    """Sample rate of the last frame returned, in Hz."""
    frames: int = 0
    _samples: dict[int, int] = field(default_factory=dict)
    """Number of samples by sample rate. Kept exact; `duration_ms` rounds the sum."""
    _held: bytearray = field(default_factory=bytearray)
    _skip: int = 0
    _last: Mp3Header | None = None
    """Header of the frame directly before `_held`; `None` while searching for the next frame."""
    _first: bool = True
    """Whether the next frame may be a Xing, Info or VBRI frame instead of audio."""

    @property
    def duration_ms(self) -> int:
        """Duration of all frames returned so far, in milliseconds."""
        return round(sum(samples * 1000 / rate for rate, samples in self._samples.items()))

    @property
    def held_ms(self) -> float:
        """Estimated duration of the incomplete next frame in milliseconds, based on the size of the last frame."""
        if self._last is None:
            return 0.0
        share = min(1.0, len(self._held) / self._last.frame_bytes)
        return share * self._last.samples * 1000 / self._last.sample_rate

    def feed(self, piece: bytes) -> bytes:
        """Return the frames that `piece` completes. The last one may be held back until more bytes confirm it."""
        self._held += piece
        return self._take_frames(ended=False)

    def end(self) -> bytes:
        """End this MP3 file and return its remaining frames. An incomplete frame is dropped.

        The next call of `feed` begins another MP3 file.
        """
        rest = self._take_frames(ended=True)
        self._held.clear()
        self._skip, self._last, self._first = 0, None, True
        return rest

    def _take_frames(self, *, ended: bool) -> bytes:
        frames = bytearray()
        at = 0
        while (step := self._step(at, ended=ended)) is not None:
            size, header = step
            if header is not None:
                frames += self._take_frame(header, at)
            at += size
        del self._held[:at]
        return bytes(frames)

    def _step(self, at: int, *, ended: bool) -> tuple[int, Mp3Header | None] | None:
        """Return how many bytes to consume at `at`, and the header if they are a frame.

        Return `None` if more bytes are needed.
        """
        if self._skip:
            return self._skip_tag(at)
        if at == len(self._held) or not (ended or self._identifiable(at)):
            return None
        if tag := self._tag_bytes(at):
            self._skip, self._last, self._first = tag, None, True
            return 0, None
        header = mp3_header(self._held, at)
        if self._last is not None and not (header and header.continues(self._last)):
            self._last = None
        if header is None:
            start = _START.search(self._held, at + 1)
            return (start.start() if start else len(self._held)) - at, None
        return self._frame(header, at, ended=ended)

    def _skip_tag(self, at: int) -> tuple[int, None] | None:
        size = min(len(self._held) - at, self._skip)
        self._skip -= size
        return (size, None) if size else None

    def _identifiable(self, at: int) -> bool:
        """Return whether enough bytes have arrived to identify what begins at `at`."""
        needed = HEADER_BYTES if self._held.startswith(b"\xff", at) else _ID3V2_BYTES
        return len(self._held) >= at + needed

    def _tag_bytes(self, at: int) -> int:
        if self._held.startswith(b"TAG", at):
            return _ID3V1_BYTES
        return id3v2_bytes(self._held, at)

    def _frame(self, header: Mp3Header, at: int, *, ended: bool) -> tuple[int, Mp3Header | None] | None:
        """Return the step for a possible frame at `at`.

        Directly after a frame, the header is trusted. Otherwise the bytes after the frame must confirm it.
        """
        end = at + header.frame_bytes
        if not ended and (len(self._held) < end or (self._last is None and not self._identifiable(end))):
            return None
        if len(self._held) < end or (self._last is None and not self._confirmed(header, end)):
            return 1, None
        self._last = header
        return header.frame_bytes, header

    def _confirmed(self, header: Mp3Header, end: int) -> bool:
        next_header = mp3_header(self._held, end)
        if next_header is not None:
            return next_header.continues(header)
        return len(self._held) < end + HEADER_BYTES or self._tag_bytes(end) > 0

    def _take_frame(self, header: Mp3Header, at: int) -> bytes:
        frame = bytes(self._held[at : at + header.frame_bytes])
        first, self._first = self._first, False
        if first and _is_info_frame(header, frame):
            return b""
        self.sample_rate = header.sample_rate
        self.frames += 1
        self._samples[header.sample_rate] = self._samples.get(header.sample_rate, 0) + header.samples
        return frame


def mp3_duration_ms(data: bytes) -> int:
    """Return the duration of a complete MP3 file in milliseconds."""
    joiner = Mp3Joiner()
    joiner.feed(data)
    joiner.end()
    return joiner.duration_ms


def _is_info_frame(header: Mp3Header, frame: bytes) -> bool:
    """Return whether the frame holds a Xing, Info or VBRI table instead of audio."""
    side_bytes = {1152: (32, 17), 576: (17, 9)}[header.samples][header.mono]
    offsets = {HEADER_BYTES + side_bytes}
    if header.protected:  # Some encoders count the two bytes of the checksum, some do not.
        offsets.add(HEADER_BYTES + side_bytes + 2)
    return frame.startswith(b"VBRI", 36) or any(frame.startswith((b"Xing", b"Info"), at) for at in offsets)
