"""The figures of the detection of turns: what is wrong with the ends that it finds, and what it costs."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.turns.recordings import Recording
from streams.audio.turn_end import SAMPLE_RATE, TurnEnd
from streams.wire.errors import InvalidParameter
from vendors.speech.voice_activity import TurnListener, VoiceActivity

CHUNK_MS = 100
MAX_CORE = 0.02
"""The share of a core that the detection for one live stream may cost."""
_CHUNK_BYTES = 2 * SAMPLE_RATE * CHUNK_MS // 1000
_EARLY_MS = 100
"""An end is in mid-sentence if it is found this long before the end of the last word. Words fade away."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Ends:
    """What was found with one `silence_ms`."""

    silence_ms: int
    sentences: Mapping[int, int]
    """How many there are, by the length of their pause in ms."""
    cut_off: Mapping[int, int]
    """How many of them ended before their last word, by the same."""
    endless: int
    """Sentences whose end was not found."""
    delays_ms: Sequence[float]
    """From the end of the last word to the decision, in sentences that were heard to their end."""
    others: int
    false_starts: int
    """Recordings without speech in which speech was heard."""

    def by_pause(self) -> list[str]:
        counts = (f"{self.cut_off.get(pause_ms, 0)} of {all_}" for pause_ms, all_ in sorted(self.sentences.items()))
        return [f"{self.silence_ms}", *counts]

    def cells(self) -> list[str]:
        ranked = sorted(self.delays_ms) or [0]
        p50, p95 = (ranked[(len(ranked) - 1) * percent // 100] for percent in (50, 95))
        cut_off, sentences = (
            sum(count for pause_ms, count in counts.items() if pause_ms < self.silence_ms)
            for counts in (self.cut_off, self.sentences)
        )
        return [
            f"{self.silence_ms}",
            f"{cut_off} of {sentences}",
            f"{self.endless} of {sum(self.sentences.values()) - sum(self.cut_off.values())}",
            f"{p50:.0f} / {p95:.0f} / {ranked[-1]:.0f}",
            f"{self.false_starts} of {self.others}",
        ]


HEADINGS = (
    "`silence_ms`",
    "cut off though the pause is shorter",
    "end not found",
    "ms from the last word to the end, p50 / p95 / max",
    "false starts without speech",
)


def tables(rows: Sequence[Ends]) -> str:
    """Return how many sentences were cut off, by the length of their pause, and what else was found."""
    pauses = (f"cut off at a pause of {pause_ms} ms" for pause_ms in sorted(rows[0].sentences))
    by_pause = _table(("`silence_ms`", *pauses), [row.by_pause() for row in rows])
    return f"{by_pause}\n\n{_table(HEADINGS, [row.cells() for row in rows])}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---:"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


async def find_ends(activity: VoiceActivity, recordings: Sequence[Recording], silence_ms: int) -> Ends:
    """Judge the ends of all recordings."""
    delays, endless, false_starts = [], 0, 0
    sentences, cut_off = Counter[int](), Counter[int]()
    for recording in recordings:
        decided_ms = await _decided_ms(activity, recording, silence_ms)
        if recording.end_ms is None:
            false_starts += decided_ms is not None
            continue
        sentences[recording.pause_ms] += 1
        if decided_ms is None:
            endless += 1
        elif decided_ms - silence_ms < recording.end_ms - _EARLY_MS:
            cut_off[recording.pause_ms] += 1
        else:
            delays.append(decided_ms - recording.end_ms)
    others = len(recordings) - sentences.total()
    return Ends(silence_ms, sentences, cut_off, endless, delays, others, false_starts)


async def _decided_ms(activity: VoiceActivity, recording: Recording, silence_ms: int) -> float | None:
    """Return how much audio had been heard when the turn ended; `None` if it did not end."""
    heard = 0
    async with activity.listening(TurnEnd(silence_ms=silence_ms)) as listener:
        for at in range(0, len(recording.pcm), _CHUNK_BYTES):
            try:
                heard += len(await listener.feed(recording.pcm[at : at + _CHUNK_BYTES]))
            except InvalidParameter:
                return None
            if listener.ended:
                return heard / 2 * 1000 / SAMPLE_RATE
    return None


@dataclass(frozen=True, slots=True)
class LiveCost:
    """What one live stream costs: the share of a core, and memory."""

    streams: int
    core: float
    first_mib: float
    each_mib: float

    def __str__(self) -> str:
        limit = f"at most {100 * MAX_CORE:.0f}%"
        return (
            f"{self.streams} live streams in chunks of {CHUNK_MS} ms: {100 * self.core:.2f}% of a core each "
            f"({limit}), {self.first_mib:.0f} MiB for the first and {self.each_mib:.1f} MiB for each other."
        )


async def measure_live(activity: VoiceActivity, speech: bytes, *, streams: int, for_s: float) -> LiveCost:
    """Feed several listeners as fast as people speak, and measure the CPU time and the memory of this process."""
    memory = [_resident_mib()]
    async with AsyncExitStack() as stack:
        listeners = []
        for _ in range(streams):
            listener = await stack.enter_async_context(activity.listening(TurnEnd(silence_ms=60_000)))
            await listener.feed(speech[:_CHUNK_BYTES])
            listeners.append(listener)
            memory.append(_resident_mib())
        began = time.process_time()
        async with asyncio.TaskGroup() as tasks:
            for number, listener in enumerate(listeners):
                tasks.create_task(_speak(listener, speech, number / streams * CHUNK_MS / 1000, for_s))
        core = (time.process_time() - began) / for_s / streams
    each = (memory[-1] - memory[1]) / max(streams - 1, 1)
    return LiveCost(streams, core, memory[1] - memory[0], each)


async def _speak(listener: TurnListener, speech: bytes, wait_s: float, for_s: float) -> None:
    await asyncio.sleep(wait_s)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(round(for_s * 1000 / CHUNK_MS)):
        begin = number * _CHUNK_BYTES % (len(speech) - _CHUNK_BYTES)
        await listener.feed(speech[begin : begin + _CHUNK_BYTES])
        await asyncio.sleep(max(0.0, began + (number + 1) * CHUNK_MS / 1000 - loop.time()))


def _resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 2**20
