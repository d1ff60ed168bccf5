"""The one table of the fault scorecard: which fault can come where, and what has to come of it.

A vendor's fault comes `before` the first output or `after` it. Recognition and assessment have no output before
their result is whole, nor has a voice whose vendor answers with all of its audio at once: there `after` means that
a part of the vendor's answer has come. A caller's comes while it uploads or behind that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from vendors.sandbox.bill import End
from vendors.sandbox.faults import Fault

Stage = Literal["llm", "stt", "tts", "assess"]
Position = Literal["before", "after"]
POSITIONS: tuple[Position, ...] = ("before", "after")


class Outcome(StrEnum):
    FALLS_BACK = "falls back"
    """Alone, the client is told why by `all_strategies_failed`; the next strategy's answer comes whole."""
    BREAKS_OFF = "breaks off"
    """`error` `backend_unavailable` behind a part of the answer, kept as incomplete; nobody else is asked."""
    NO_SPEECH = "no speech"
    """The vendor answered well, with nothing: `no speech was heard`; nobody else is asked."""
    TOO_SLOW = "too slow"
    """Slower than it plays: the next strategy speaks before anything is heard; the last one's audio is sent."""
    ABORTED = "aborted"
    """As if the client had never asked: nothing is kept, and no vendor is asked, or the call is closed."""
    LEFT = "left"
    """The reader is missed for the grace time: then the vendor's call is closed, what was said is incomplete."""


@dataclass(frozen=True, slots=True)
class NotPossible:
    reason: str


Expected = Outcome | NotPossible
Pair = tuple[Expected, Expected]
"""Of the two positions."""


class Place(StrEnum):
    """Where the account's address leads."""

    SANDBOX = "sandbox"
    REFUSED = "refused"
    NO_NAME = "no name"
    BROKEN_TLS = "broken TLS"


@dataclass(frozen=True, slots=True)
class Row:
    """A fault. `calls`: what the sandbox sees of one attempt; `ended`: how such a call may end.

    `waits`: where it lets no output come, only our patience ends it.
    """

    name: str
    llm: Pair
    stt: Pair
    tts: Pair
    assess: Pair
    fault: Fault | None = None
    place: Place = Place.SANDBOX
    calls: int = 1
    ended: frozenset[End] = frozenset({"fault"})
    waits: bool = False
    endless: bool = False
    """Whether it goes on and on where our patience does not end it: the stream's total does."""
    orders: Mapping[str, Any] = field(default_factory=dict)

    def of(self, stage: Stage) -> Pair:
        pair: Pair = getattr(self, stage)
        return pair


RESULTS: frozenset[Stage] = frozenset({"stt", "assess"})
"""Stages whose output is one whole result."""
LEFT_BY_US: frozenset[End] = frozenset({"closed_by_client"})
EITHER: frozenset[End] = frozenset({"fault", "closed_by_client"})
DEFAULT_APP = "default"
SHORT_APP = "short"
"""The app whose streams may last but a moment."""

F, B, S, T = Outcome.FALLS_BACK, Outcome.BREAKS_OFF, Outcome.NO_SPEECH, Outcome.TOO_SLOW
NO_CONNECTION = NotPossible("where there is no connection there was no output")
INSTEAD = NotPossible("it comes in place of an answer")
BY_NAME = NotPossible("by its name it comes before")
NOT_EMPTY = NotPossible("an answer with output is not empty")
DRIPS = NotPossible("what drips is a part of the answer; no part at all is a hang")
NO_FRAMES = NotPossible("bare audio has no frames")
ONE_FRAME = NotPossible("one JSON value has no frames behind its first")
ONCE = (F, INSTEAD)

ROWS = (
    #                        llm                 stt                 tts                 assess
    Row("refused",           (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION),
        place=Place.REFUSED, calls=0),
    Row("DNS failure",       (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION),
        place=Place.NO_NAME, calls=0),
    Row("TLS failure",       (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION),
        place=Place.BROKEN_TLS, calls=0),
    Row("401",               ONCE,               ONCE,               ONCE,               ONCE,
        Fault.UNAUTHORIZED),
    Row("429 Retry-After",   ONCE,               ONCE,               ONCE,               ONCE,
        Fault.RATE_LIMITED, calls=2, orders={"retry_after_s": 0.02}),
    Row("500",               ONCE,               ONCE,               ONCE,               ONCE,
        Fault.SERVER_ERROR, calls=2),
    Row("503",               ONCE,               ONCE,               ONCE,               ONCE,
        Fault.UNAVAILABLE, calls=2, orders={"retry_after_s": 0.02}),
    Row("hang before headers",      (F, BY_NAME), (F, BY_NAME),      (F, BY_NAME),       (F, BY_NAME),
        Fault.HANG_BEFORE_HEADERS, ended=LEFT_BY_US, waits=True),
    Row("hang before first output", (F, BY_NAME), (F, BY_NAME),      (F, BY_NAME),       (F, BY_NAME),
        Fault.HANG_BEFORE_OUTPUT, ended=LEFT_BY_US, waits=True),
    Row("stall mid-stream",  (F, B),             (F, F),             (F, B),             (F, F),
        Fault.STALL_MID_STREAM, ended=LEFT_BY_US, waits=True),
    Row("cut mid-stream",    (F, B),             (F, F),             (F, B),             (F, F),
        Fault.CUT_MID_STREAM),
    Row("malformed frame",   (F, B),             (F, F),             (F, B),             (F, F),
        Fault.MALFORMED_FRAME, ended=EITHER),
    Row("error inside a 200", (F, B),            (F, F),             (F, B),             (F, F),
        Fault.ERROR_INSIDE_200, ended=EITHER),
    Row("empty answer",      (F, NOT_EMPTY),     (S, NOT_EMPTY),     (F, NOT_EMPTY),     (S, NOT_EMPTY),
        Fault.EMPTY_ANSWER, ended=EITHER),
    Row("slow drip",         (F, B),             (DRIPS, F),         (T, B),             (DRIPS, F),
        Fault.SLOW_DRIP, ended=LEFT_BY_US, waits=True, endless=True, orders={"pace_ms": 40}),
    Row("wrong content type", ONCE,              ONCE,               ONCE,               ONCE,
        Fault.WRONG_CONTENT_TYPE),
)  # fmt: skip


Manner = Literal["half-close", "reset", "stop reading"]


@dataclass(frozen=True, slots=True)
class CallerRow:
    """What a caller does to us, `uploading` or behind its upload."""

    name: str
    llm: Expected
    stt: Expected
    tts: Expected
    assess: Expected
    manner: Manner
    uploading: bool

    def of(self, stage: Stage) -> Expected:
        expected: Expected = getattr(self, stage)
        return expected


A, L = Outcome.ABORTED, Outcome.LEFT
TOO_LITTLE = NotPossible("too little is sent to it to fill the connection")

CALLER_ROWS = (
    #                                          llm  stt         tts  assess
    CallerRow("half-closed during the upload", A,   A,          A,   A,          "half-close", uploading=True),
    CallerRow("reset during the upload",       A,   A,          A,   A,          "reset", uploading=True),
    CallerRow("half-closed behind the upload", L,   L,          L,   L,          "half-close", uploading=False),
    CallerRow("reader that stops",             L,   TOO_LITTLE, L,   TOO_LITTLE, "stop reading", uploading=False),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lane:
    """A stage as one vendor does it. `call`: what a config of that stage says beside its account.

    `after`: how many pieces of output come before a fault after the first output, for a piece may be too little
    to be passed on. `whole`: nothing is passed on before the vendor's answer is whole, whatever the stage.
    `otherwise`: what cannot come in this vendor's framing, or comes out in another way.
    """

    name: str
    stage: Stage
    platform: str
    root: str
    call: Mapping[str, Any]
    after: int = 1
    whole: bool = False
    orders: Mapping[Fault, Mapping[str, Any]] = field(default_factory=dict)
    otherwise: Mapping[tuple[Fault, Position], Expected] = field(default_factory=dict)


_AZURE_VOICE = {"voice": "en-US-JennyNeural"}
_TWO_PARTS = {Fault.SLOW_DRIP: {"pace_ms": 60_000}}
"""Of two phrases, or two halves of an answer, the second is late."""
_SLOWER_THAN_PLAYED = 150
"""Milliseconds between pieces that play for 100."""
_BARE: dict[tuple[Fault, Position], NotPossible] = {
    (Fault.MALFORMED_FRAME, "before"): NO_FRAMES,
    (Fault.MALFORMED_FRAME, "after"): NO_FRAMES,
    (Fault.ERROR_INSIDE_200, "after"): NO_FRAMES,
}
_ONE_VALUE: dict[tuple[Fault, Position], NotPossible] = {
    (Fault.MALFORMED_FRAME, "after"): ONE_FRAME,
    (Fault.ERROR_INSIDE_200, "after"): ONE_FRAME,
}
_READER = {"model": "gpt-audio-mini", "voice": "alloy"}
"""A chat model that reads aloud: samples as a stream, MP3 at once."""

LANES = (
    Lane("llm openai", "llm", "vendor_b_llm", "/openai/v1", {"model": "gpt-4o-mini"}),
    Lane("llm anthropic", "llm", "anthropic", "/anthropic", {"model": "claude-3-5-haiku-latest"}),
    Lane("llm gemini", "llm", "gemini", "/gemini/v1beta", {"model": "gemini-2.5-flash"}),
    Lane("stt openai", "stt", "vendor_b_audio", "/openai/v1", {"model": "gpt-4o-transcribe"}),
    Lane("stt azure", "stt", "vendor_a_audio", "/azure", {}, orders=_TWO_PARTS),
    Lane("stt google", "stt", "vendor_d_audio", "/google", {}, orders=_TWO_PARTS, otherwise=_ONE_VALUE),
    Lane("tts openai", "tts", "vendor_b_audio", "/openai/v1", {"model": "gpt-4o-mini-tts", "voice": "alloy"}, 12),
    Lane(
        "tts openai chat", "tts", "vendor_b_llm", "/openai/v1", {**_READER, "audio_format": "wav"}, 12,
        otherwise={(Fault.SLOW_DRIP, "before"): B},  # the beginning is held, and one piece has no pace
    ),
    Lane(
        "tts openai chat mp3", "tts", "vendor_b_llm", "/openai/v1", _READER,
        whole=True, orders=_TWO_PARTS, otherwise=_ONE_VALUE,
    ),
    Lane("tts azure", "tts", "vendor_a_audio", "/azure", {**_AZURE_VOICE, "need_viseme": True}, 12),
    Lane("tts azure http", "tts", "vendor_a_audio", "/azure", _AZURE_VOICE, 12, otherwise=_BARE),
    Lane(
        "tts elevenlabs", "tts", "vendor_c", "/elevenlabs",
        {"model": "eleven_flash_v2_5", "voice": "21m00Tcm4TlvDq8ikWAM", "need_viseme": True}, 12,
    ),
    Lane(
        "tts google", "tts", "vendor_d_audio", "/google", {"voice": "en-US-Neural2-C", "need_viseme": True},
        whole=True, orders=_TWO_PARTS, otherwise=_ONE_VALUE,
    ),
    Lane("assess azure", "assess", "vendor_a_audio", "/azure", {}, orders=_TWO_PARTS),
)  # fmt: skip
CALLER_LANES = tuple(
    lane for lane in LANES if lane.name in {"llm openai", "stt azure", "tts openai", "assess azure"}
)
"""One for each stage; those that hear do so while the audio still comes."""


@dataclass(frozen=True, slots=True)
class Cell:
    row: Row
    lane: Lane
    position: Position

    @property
    def name(self) -> str:
        """Of its configs, and of its calls in the sandbox's bill."""
        return f"{self.lane.name} {self.row.name} {self.position}".replace(" ", ".")

    @property
    def expected(self) -> Expected:
        possible = self.row.of(self.lane.stage)[POSITIONS.index(self.position)]
        if self.lane.whole:
            possible = {Outcome.BREAKS_OFF: F, Outcome.TOO_SLOW: DRIPS}.get(possible, possible)
        if isinstance(possible, NotPossible) or self.row.fault is None:
            return possible
        return self.lane.otherwise.get((self.row.fault, self.position), possible)

    @property
    def waits(self) -> bool:
        """Whether only the strategy's time for the first output ends the attempt."""
        no_output = self.position == "before" or self.lane.whole or self.lane.stage in RESULTS
        return self.row.waits and no_output and self.expected is Outcome.FALLS_BACK

    @property
    def app(self) -> str:
        """Where its strategies stand."""
        return SHORT_APP if self.row.endless and not self.waits else DEFAULT_APP

    @property
    def more(self) -> dict[str, Any]:
        """What its config says beside what all of the lane do."""
        endless = self.row.endless and self.position == "after" and self.lane.stage == "tts"
        return {"min_realtime_factor": 0} if endless else {}  # a busy machine is slow by itself

    @property
    def orders(self) -> dict[str, Any]:
        """For the sandbox, behind its name."""
        if self.row.fault is None:
            return {}
        position = 0 if self.position == "before" else self.lane.after
        more = dict(self.lane.orders.get(self.row.fault, {}))
        if self.row.endless and self.position == "before" and self.lane.stage == "tts":
            more["pace_ms"] = _SLOWER_THAN_PLAYED
        return {"fault": self.row.fault, "position": position, **self.row.orders, **more}


def cells() -> Iterator[Cell]:
    """All of the table, those too that cannot be."""
    for row in ROWS:
        for position in POSITIONS:
            for lane in LANES:
                yield Cell(row, lane, position)


@dataclass(frozen=True, slots=True)
class CallerCell:
    row: CallerRow
    lane: Lane

    @property
    def name(self) -> str:
        return f"{self.lane.name} {self.row.name}".replace(" ", ".")

    @property
    def expected(self) -> Expected:
        return self.row.of(self.lane.stage)


def caller_cells() -> Iterator[CallerCell]:
    """All of the callers' table."""
    for row in CALLER_ROWS:
        for lane in CALLER_LANES:
            yield CallerCell(row, lane)
