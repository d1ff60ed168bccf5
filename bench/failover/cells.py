"""The table of the fault scorecard: which fault can occur where, and the expected outcome.

A vendor's fault occurs `before` or `after` the first output. Recognition and assessment have no output before their
result is complete, and neither have voices whose vendor sends all audio at once: there, `after` means that a part
of the vendor's answer has arrived. A caller's fault occurs during or after the upload.
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
    """The client receives the complete answer of the next strategy, or `all_strategies_failed` if there is none."""
    BREAKS_OFF = "breaks off"
    """The stream ends with `backend_unavailable` after a part of the answer. The record is incomplete, and no other
    strategy is tried."""
    NO_SPEECH = "no speech"
    """The vendor's answer is valid but empty. The stream ends with `no speech was heard`, and no other strategy is
    tried."""
    TOO_SLOW = "too slow"
    """The audio arrives slower than it plays. The next strategy replaces it before any audio is sent; the audio of
    the last strategy is sent unchanged."""
    ABORTED = "aborted"
    """No vendor is called or its call is closed, and no record is stored."""
    LEFT = "left"
    """After the grace time the vendor's call is closed. The record is incomplete."""


@dataclass(frozen=True, slots=True)
class NotPossible:
    """Marks a cell whose fault cannot occur."""

    reason: str


Expected = Outcome | NotPossible
Pair = tuple[Expected, Expected]
"""The expected outcomes for the two positions."""


class Endpoint(StrEnum):
    """Where the base URL of the vendor account points."""

    SANDBOX = "sandbox"
    REFUSED = "refused"
    NO_NAME = "no name"
    BROKEN_TLS = "broken TLS"


@dataclass(frozen=True, slots=True)
class Row:
    """A fault, with the expected outcome for each stage.

    `calls` is the number of calls that the sandbox receives for one attempt, `ended` how these calls may end. With
    `times_out`, only a timeout of the server ends an attempt that has no output.
    """

    name: str
    llm: Pair
    stt: Pair
    tts: Pair
    assess: Pair
    fault: Fault | None = None
    endpoint: Endpoint = Endpoint.SANDBOX
    calls: int = 1
    ended: frozenset[End] = frozenset({"fault"})
    times_out: bool = False
    endless: bool = False
    """Whether an attempt that has output continues until the limit for the whole stream ends it."""
    key_options: Mapping[str, Any] = field(default_factory=dict)

    def of(self, stage: Stage) -> Pair:
        pair: Pair = getattr(self, stage)
        return pair


RESULT_STAGES: frozenset[Stage] = frozenset({"stt", "assess"})
"""Stages whose output is a single result."""
CLOSED_BY_SERVER: frozenset[End] = frozenset({"closed_by_client"})
EITHER: frozenset[End] = frozenset({"fault", "closed_by_client"})
DEFAULT_APP = "default"
SHORT_APP = "short"
"""The app whose streams may last 1.5 s."""

F, B, S, T = Outcome.FALLS_BACK, Outcome.BREAKS_OFF, Outcome.NO_SPEECH, Outcome.TOO_SLOW
NO_CONNECTION = NotPossible("without a connection there is no output")
REPLACES_ANSWER = NotPossible("the fault replaces the answer")
EARLY = NotPossible("the fault occurs before the output by definition")
NOT_EMPTY = NotPossible("an answer with output is not empty")
DRIPS = NotPossible("every part that drips is output; without output the fault is a hang")
NO_FRAMES = NotPossible("bare audio has no frames")
SINGLE_FRAME = NotPossible("the answer is a single JSON value without further frames")
BEFORE = (F, REPLACES_ANSWER)

ROWS = (
    #                        llm                 stt                 tts                 assess
    Row("refused",           (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION),
        endpoint=Endpoint.REFUSED, calls=0),
    Row("DNS failure",       (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION),
        endpoint=Endpoint.NO_NAME, calls=0),
    Row("TLS failure",       (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION), (F, NO_CONNECTION),
        endpoint=Endpoint.BROKEN_TLS, calls=0),
    Row("401",               BEFORE,             BEFORE,             BEFORE,             BEFORE,
        Fault.UNAUTHORIZED),
    Row("429 Retry-After",   BEFORE,             BEFORE,             BEFORE,             BEFORE,
        Fault.RATE_LIMITED, calls=2, key_options={"retry_after_s": 0.02}),
    Row("500",               BEFORE,             BEFORE,             BEFORE,             BEFORE,
        Fault.SERVER_ERROR, calls=2),
    Row("503",               BEFORE,             BEFORE,             BEFORE,             BEFORE,
        Fault.UNAVAILABLE, calls=2, key_options={"retry_after_s": 0.02}),
    Row("hang before headers",      (F, EARLY),   (F, EARLY),         (F, EARLY),         (F, EARLY),
        Fault.HANG_BEFORE_HEADERS, ended=CLOSED_BY_SERVER, times_out=True),
    Row("hang before first output", (F, EARLY),   (F, EARLY),         (F, EARLY),         (F, EARLY),
        Fault.HANG_BEFORE_OUTPUT, ended=CLOSED_BY_SERVER, times_out=True),
    Row("stall mid-stream",  (F, B),             (F, F),             (F, B),             (F, F),
        Fault.STALL_MID_STREAM, ended=CLOSED_BY_SERVER, times_out=True),
    Row("cut mid-stream",    (F, B),             (F, F),             (F, B),             (F, F),
        Fault.CUT_MID_STREAM),
    Row("malformed frame",   (F, B),             (F, F),             (F, B),             (F, F),
        Fault.MALFORMED_FRAME, ended=EITHER),
    Row("error inside a 200", (F, B),            (F, F),             (F, B),             (F, F),
        Fault.ERROR_INSIDE_200, ended=EITHER),
    Row("empty answer",      (F, NOT_EMPTY),     (S, NOT_EMPTY),     (F, NOT_EMPTY),     (S, NOT_EMPTY),
        Fault.EMPTY_ANSWER, ended=EITHER),
    Row("slow drip",         (F, B),             (DRIPS, F),         (T, B),             (DRIPS, F),
        Fault.SLOW_DRIP, ended=CLOSED_BY_SERVER, times_out=True, endless=True, key_options={"pace_ms": 40}),
    Row("wrong content type", BEFORE,            BEFORE,             BEFORE,             BEFORE,
        Fault.WRONG_CONTENT_TYPE),
)  # fmt: skip


CallerAction = Literal["half-close", "reset", "stop reading"]


@dataclass(frozen=True, slots=True)
class CallerRow:
    """A fault of a caller, during its upload (`uploading`) or after it."""

    name: str
    llm: Expected
    stt: Expected
    tts: Expected
    assess: Expected
    action: CallerAction
    uploading: bool

    def of(self, stage: Stage) -> Expected:
        expected: Expected = getattr(self, stage)
        return expected


A, L = Outcome.ABORTED, Outcome.LEFT
TOO_LITTLE = NotPossible("the response is too small to fill the connection's buffers")

CALLER_ROWS = (
    #                                          llm  stt         tts  assess
    CallerRow("half-closed during the upload", A,   A,          A,   A,          "half-close", uploading=True),
    CallerRow("reset during the upload",       A,   A,          A,   A,          "reset", uploading=True),
    CallerRow("half-closed after the upload",  L,   L,          L,   L,          "half-close", uploading=False),
    CallerRow("reader that stops reading",     L,   TOO_LITTLE, L,   TOO_LITTLE, "stop reading", uploading=False),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class VendorStage:
    """A stage with one vendor's protocol. `call` has the fields of the stage's config in addition to the account.

    `after` is the number of pieces of output before a fault of the position `after`; one piece may be too small for
    the server to send it. With `all_at_once`, the server sends nothing before the vendor's answer is complete.
    `exceptions` are the cells in which this vendor's framing causes another outcome.
    """

    name: str
    stage: Stage
    platform: str
    root: str
    call: Mapping[str, Any]
    after: int = 1
    all_at_once: bool = False
    key_options: Mapping[Fault, Mapping[str, Any]] = field(default_factory=dict)
    exceptions: Mapping[tuple[Fault, Position], Expected] = field(default_factory=dict)


_AZURE_VOICE = {"voice": "en-US-JennyNeural"}
_TWO_PARTS = {Fault.SLOW_DRIP: {"pace_ms": 60_000}}
"""The second phrase, or the second half of an answer, comes after a minute."""
_SLOWER_THAN_PLAYED = 150
"""Milliseconds between pieces of audio that play for 100 ms."""
_BARE_AUDIO: dict[tuple[Fault, Position], NotPossible] = {
    (Fault.MALFORMED_FRAME, "before"): NO_FRAMES,
    (Fault.MALFORMED_FRAME, "after"): NO_FRAMES,
    (Fault.ERROR_INSIDE_200, "after"): NO_FRAMES,
}
_SINGLE_JSON: dict[tuple[Fault, Position], NotPossible] = {
    (Fault.MALFORMED_FRAME, "after"): SINGLE_FRAME,
    (Fault.ERROR_INSIDE_200, "after"): SINGLE_FRAME,
}
_CHAT_READER = {"model": "gpt-audio-mini", "voice": "alloy"}
"""A chat model that reads text aloud. Its WAV audio is streamed, its MP3 audio arrives at once."""

VENDOR_STAGES = (
    VendorStage("llm openai", "llm", "vendor_b_llm", "/openai/v1", {"model": "gpt-4o-mini"}),
    VendorStage("llm anthropic", "llm", "anthropic", "/anthropic", {"model": "claude-3-5-haiku-latest"}),
    VendorStage("llm gemini", "llm", "gemini", "/gemini/v1beta", {"model": "gemini-2.5-flash"}),
    VendorStage("stt openai", "stt", "vendor_b_audio", "/openai/v1", {"model": "gpt-4o-transcribe"}),
    VendorStage("stt azure", "stt", "vendor_a_audio", "/azure", {}, key_options=_TWO_PARTS),
    VendorStage(
        "stt google", "stt", "vendor_d_audio", "/google", {}, key_options=_TWO_PARTS, exceptions=_SINGLE_JSON
    ),
    VendorStage(
        "tts openai", "tts", "vendor_b_audio", "/openai/v1", {"model": "gpt-4o-mini-tts", "voice": "alloy"}, 12,
    ),
    VendorStage(
        "tts openai chat", "tts", "vendor_b_llm", "/openai/v1", {**_CHAT_READER, "audio_format": "wav"}, 12,
        exceptions={(Fault.SLOW_DRIP, "before"): B},  # The beginning is held and sent in one piece.
    ),
    VendorStage(
        "tts openai chat mp3", "tts", "vendor_b_llm", "/openai/v1", _CHAT_READER,
        all_at_once=True, key_options=_TWO_PARTS, exceptions=_SINGLE_JSON,
    ),
    VendorStage("tts azure", "tts", "vendor_a_audio", "/azure", {**_AZURE_VOICE, "need_viseme": True}, 12),
    VendorStage("tts azure http", "tts", "vendor_a_audio", "/azure", _AZURE_VOICE, 12, exceptions=_BARE_AUDIO),
    VendorStage(
        "tts elevenlabs", "tts", "vendor_c", "/elevenlabs",
        {"model": "eleven_flash_v2_5", "voice": "21m00Tcm4TlvDq8ikWAM", "need_viseme": True}, 12,
    ),
    VendorStage(
        "tts google", "tts", "vendor_d_audio", "/google", {"voice": "en-US-Neural2-C", "need_viseme": True},
        all_at_once=True, key_options=_TWO_PARTS, exceptions=_SINGLE_JSON,
    ),
    VendorStage("assess azure", "assess", "vendor_a_audio", "/azure", {}, key_options=_TWO_PARTS),
)  # fmt: skip
CALLER_STAGES = tuple(
    vendor_stage
    for vendor_stage in VENDOR_STAGES
    if vendor_stage.name in {"llm openai", "stt azure", "tts openai", "assess azure"}
)
"""One per stage. The recognition and assessment vendors here process audio while it is uploaded."""


@dataclass(frozen=True, slots=True)
class Cell:
    row: Row
    vendor_stage: VendorStage
    position: Position

    @property
    def name(self) -> str:
        """The name of the cell's configs and of its calls in the sandbox's bill."""
        return f"{self.vendor_stage.name} {self.row.name} {self.position}".replace(" ", ".")

    @property
    def expected(self) -> Expected:
        expected = self.row.of(self.vendor_stage.stage)[POSITIONS.index(self.position)]
        if self.vendor_stage.all_at_once:
            expected = {Outcome.BREAKS_OFF: F, Outcome.TOO_SLOW: DRIPS}.get(expected, expected)
        if isinstance(expected, NotPossible) or self.row.fault is None:
            return expected
        return self.vendor_stage.exceptions.get((self.row.fault, self.position), expected)

    @property
    def times_out(self) -> bool:
        """Whether only the strategy's timeout for the first output ends the attempt."""
        no_output = (
            self.position == "before" or self.vendor_stage.all_at_once or self.vendor_stage.stage in RESULT_STAGES
        )
        return self.row.times_out and no_output and self.expected is Outcome.FALLS_BACK

    @property
    def app(self) -> str:
        """The app that has the cell's strategies."""
        return SHORT_APP if self.row.endless and not self.times_out else DEFAULT_APP

    @property
    def options(self) -> dict[str, Any]:
        """The fields of the cell's config in addition to those of its vendor stage."""
        endless = self.row.endless and self.position == "after" and self.vendor_stage.stage == "tts"
        return {"min_realtime_factor": 0} if endless else {}  # A busy machine can be too slow by itself.

    @property
    def key_options(self) -> dict[str, Any]:
        """The cell's options for the sandbox, in addition to its name."""
        if self.row.fault is None:
            return {}
        position = 0 if self.position == "before" else self.vendor_stage.after
        options = dict(self.vendor_stage.key_options.get(self.row.fault, {}))
        if self.row.endless and self.position == "before" and self.vendor_stage.stage == "tts":
            options["pace_ms"] = _SLOWER_THAN_PLAYED
        return {"fault": self.row.fault, "position": position, **self.row.key_options, **options}


def cells() -> Iterator[Cell]:
    """Yield all cells of the table, including those that are not possible."""
    for row in ROWS:
        for position in POSITIONS:
            for vendor_stage in VENDOR_STAGES:
                yield Cell(row, vendor_stage, position)


@dataclass(frozen=True, slots=True)
class CallerCell:
    row: CallerRow
    vendor_stage: VendorStage

    @property
    def name(self) -> str:
        return f"{self.vendor_stage.name} {self.row.name}".replace(" ", ".")

    @property
    def expected(self) -> Expected:
        return self.row.of(self.vendor_stage.stage)


def caller_cells() -> Iterator[CallerCell]:
    """Yield all cells of the callers' table."""
    for row in CALLER_ROWS:
        for vendor_stage in CALLER_STAGES:
            yield CallerCell(row, vendor_stage)
