"""Measure the detection of the end of a turn over recordings that this command makes.

`python -m bench.turns` synthesizes sentences with pauses and noise, adds sounds that are not speech, and judges
where the turns end for several values of `silence_ms`. It also feeds several turns at the speed of speech.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.arrivals import prepare
from bench.generated_section import write_between
from bench.machine import Cores, describe
from bench.turns.figures import MAX_CORE, find_ends, measure_live, table
from bench.turns.recordings import recordings
from vendors.speech.voice_activity import open_voice_activity

MARKS = ("<!-- turns: written by bench.turns -->", "<!-- /turns -->")
_SILENCES_MS = (200, 300, 500, 700, 1_000)


async def run(*, streams: int, for_s: float, silences_ms: Sequence[int] = _SILENCES_MS) -> tuple[str, bool]:
    """Return the report, and whether the cost of a live stream is within its limit."""
    made = await recordings()
    spoken = next(recording for recording in made if recording.end_ms is not None)
    async with open_voice_activity() as activity:
        live = await measure_live(activity, spoken.pcm, streams=streams, for_s=for_s)
        rows = [await find_ends(activity, made, silence_ms) for silence_ms in silences_ms]
    counted = f"{rows[0].sentences} sentences and {rows[0].others} recordings without speech."
    return f"{table(rows)}\n\n{counted} {live}\n", live.core <= MAX_CORE


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.turns", description=__doc__)
    parser.add_argument("--streams", type=int, default=20, help="turns that are fed at once (at most 32)")
    parser.add_argument("--for-s", type=float, default=10, help="seconds for which they are fed")
    parser.add_argument("--report", type=Path, help="document into which the figures are written")
    args = parser.parse_args(arguments)
    prepare()
    machine = describe(Cores.split())
    report, is_met = asyncio.run(run(streams=args.streams, for_s=args.for_s))
    print(f"{machine}\n\n{report}", end="")
    if args.report:
        write_between(args.report, MARKS, f"\n{machine}\n\n{report}\n")
    return int(not is_met)


if __name__ == "__main__":
    sys.exit(main())
