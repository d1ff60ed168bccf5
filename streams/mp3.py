"""MPEG Layer III frames: reading their headers, and joining several MP3s into one playable file."""

import re
from dataclasses import dataclass, field

HEADER_BYTES = 4
MAX_FRAME_BYTES = 1441
"""Of Layer III with a stated bit rate: 320 kbit/s at 32 kHz, padded."""

_MPEG1, _MPEG2 = 3, 2  # version bits; 0 is MPEG 2.5, 1 is reserved
_LAYER_3 = 1
_KBPS_1 = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KBPS_2 = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = (44_100, 48_000, 32_000)
_ID3V2_BYTES = 10
_ID3V1_BYTES = 128
_START = re.compile(rb"[\xffIT]")  # of a frame, "ID3" or "TAG"


@dataclass(frozen=True, slots=True)
class Mp3Header:
    """What the four bytes in front of a frame say."""

    version: int
    sample_rate: int
    mono: bool
    protected: bool
    frame_bytes: int

    @property
    def samples(self) -> int:
        """Per channel."""
        return 1152 if self.version == _MPEG1 else 576

    def continues(self, other: "Mp3Header") -> bool:
        """Whether both can be frames of the same audio: bit rate and channel mode may change in it."""
        return (self.version, self.sample_rate) == (other.version, other.sample_rate)


def mp3_header(raw: bytes | bytearray, at: int = 0) -> Mp3Header | None:
    """The header at `at`; none where there is no valid one of Layer III with a stated bit rate."""
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
    """The size of the ID3v2 tag whose ten header bytes stand at `at`; 0 where there is none."""
    head = raw[at : at + _ID3V2_BYTES]
    if len(head) < _ID3V2_BYTES or head[:3] != b"ID3" or 0xFF in head[3:5] or max(head[6:10]) > 0x7F:
        return 0
    size = head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9]
    footer = _ID3V2_BYTES if head[5] & 0x10 else 0
    return _ID3V2_BYTES + size + footer


@dataclass(slots=True)
class Mp3Joiner:
    """Passes on the audio frames of MP3s, without what would stop a player between two of them.

    ID3v2 tags, the ID3v1 trailer, the Xing, Info or VBRI frame and foreign bytes between frames are left out.
    Pieces may be cut anywhere: what comes out depends on the joined bytes alone. Less than a frame and a
    header is held back.
    """

    sample_rate: int | None = None
    """Of the last frame passed on."""
    frames: int = 0
    _samples: dict[int, int] = field(default_factory=dict)
    """By sample rate: rounding waits until somebody asks."""
    _held: bytearray = field(default_factory=bytearray)
    _skip: int = 0
    _last: Mp3Header | None = None
    """The frame that ends where `_held` begins; none where frames have still to be found."""
    _first: bool = True
    """Whether the next frame may be one of facts instead of audio."""

    @property
    def duration_ms(self) -> int:
        """Of all frames passed on so far."""
        return round(sum(samples * 1000 / rate for rate, samples in self._samples.items()))

    @property
    def held_ms(self) -> float:
        """How much of the frame behind them has come, by the size of the last one."""
        if self._last is None:
            return 0.0
        share = min(1.0, len(self._held) / self._last.frame_bytes)
        return share * self._last.samples * 1000 / self._last.sample_rate

    def feed(self, piece: bytes) -> bytes:
        """The frames that `piece` completes, joined; the last one may wait for the bytes behind it."""
        self._held += piece
        return self._passed(ended=False)

    def end(self) -> bytes:
        """The rest of this MP3; a frame that was cut is dropped. What is fed next is another MP3."""
        rest = self._passed(ended=True)
        self._held.clear()
        self._skip, self._last, self._first = 0, None, True
        return rest

    def _passed(self, *, ended: bool) -> bytes:
        passed = bytearray()
        at = 0
        while (step := self._step(at, ended=ended)) is not None:
            size, header = step
            if header is not None:
                passed += self._taken(header, at)
            at += size
        del self._held[:at]
        return bytes(passed)

    def _step(self, at: int, *, ended: bool) -> tuple[int, Mp3Header | None] | None:
        """Size of what stands at `at` and its header where it is a frame; none where more bytes must come."""
        if self._skip:
            return self._skipped(at)
        if at == len(self._held) or not (ended or self._legible(at)):
            return None
        if tag := self._tag_bytes(at):
            self._skip, self._last, self._first = tag, None, True
            return 0, None
        header = mp3_header(self._held, at)
        if self._last is not None and not (header and header.continues(self._last)):
            self._last = None
        if header is None:
            found = _START.search(self._held, at + 1)
            return (found.start() if found else len(self._held)) - at, None
        return self._frame(header, at, ended=ended)

    def _skipped(self, at: int) -> tuple[int, None] | None:
        size = min(len(self._held) - at, self._skip)
        self._skip -= size
        return (size, None) if size else None

    def _legible(self, at: int) -> bool:
        """Whether there are bytes enough to tell what begins at `at`."""
        enough = HEADER_BYTES if self._held.startswith(b"\xff", at) else _ID3V2_BYTES
        return len(self._held) >= at + enough

    def _tag_bytes(self, at: int) -> int:
        if self._held.startswith(b"TAG", at):
            return _ID3V1_BYTES
        return id3v2_bytes(self._held, at)

    def _frame(self, header: Mp3Header, at: int, *, ended: bool) -> tuple[int, Mp3Header | None] | None:
        """A frame behind a frame is one; where frames have still to be found, the bytes behind must agree."""
        end = at + header.frame_bytes
        if not ended and (len(self._held) < end or (self._last is None and not self._legible(end))):
            return None
        if len(self._held) < end or (self._last is None and not self._confirmed(header, end)):
            return 1, None
        self._last = header
        return header.frame_bytes, header

    def _confirmed(self, header: Mp3Header, end: int) -> bool:
        follower = mp3_header(self._held, end)
        if follower is not None:
            return follower.continues(header)
        return len(self._held) < end + HEADER_BYTES or self._tag_bytes(end) > 0

    def _taken(self, header: Mp3Header, at: int) -> bytes:
        frame = bytes(self._held[at : at + header.frame_bytes])
        first, self._first = self._first, False
        if first and _holds_facts(header, frame):
            return b""
        self.sample_rate = header.sample_rate
        self.frames += 1
        self._samples[header.sample_rate] = self._samples.get(header.sample_rate, 0) + header.samples
        return frame


def mp3_duration_ms(data: bytes) -> int:
    """How long the frames of one whole MP3 play."""
    joiner = Mp3Joiner()
    joiner.feed(data)
    joiner.end()
    return joiner.duration_ms


def _holds_facts(header: Mp3Header, frame: bytes) -> bool:
    """Whether the frame holds a Xing, Info or VBRI table in place of audio."""
    side_bytes = {1152: (32, 17), 576: (17, 9)}[header.samples][header.mono]
    places = {HEADER_BYTES + side_bytes}
    if header.protected:  # some writers count the two bytes of the checksum, some do not
        places.add(HEADER_BYTES + side_bytes + 2)
    return frame.startswith(b"VBRI", 36) or any(frame.startswith((b"Xing", b"Info"), at) for at in places)
