"""Measure the detection of the end of a turn over recordings that this command makes.

`python -m bench.turns` synthesizes sentences with pauses and noise, adds sounds that are not speech, and judges
where the turns end for several values of `silence_ms`. It also feeds several turns at the speed of speech.

`python -m bench.turns --url http://127.0.0.1:8080` speaks some of the sentences to a running server instead, and
measures how long after the last word it hears the end and answers, with each strategy.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from aiohttp import ClientSession

from bench.arrivals import prepare
from bench.deployment import login
from bench.generated_section import write_between
from bench.machine import Cores, describe
from bench.turns.answered import Speaker, answers_table
from bench.turns.figures import MAX_CORE, find_ends, measure_live, tables
from bench.turns.recordings import Recording, recordings
from deploy.running import Failed
from vendors.speech.voice_activity import open_voice_activity

MARKS = ("<!-- turns: written by bench.turns -->", "<!-- /turns -->")
ANSWER_MARKS = ("<!-- answers: written by bench.turns --url -->", "<!-- /answers -->")
_SILENCES_MS = (200, 300, 500, 700, 1_000)


async def run(*, streams: int, for_s: float, silences_ms: Sequence[int] = _SILENCES_MS) -> tuple[str, bool]:
    """Return the report, and whether the cost of a live stream is within its limit."""
    made = await recordings()
    spoken = next(recording for recording in made if recording.end_ms is not None)
    async with open_voice_activity(max(streams, 1)) as activity:
        live = await measure_live(activity, spoken.pcm, streams=streams, for_s=for_s)
        rows = [await find_ends(activity, made, silence_ms) for silence_ms in silences_ms]
    sentences = sum(rows[0].sentences.values())
    counted = f"{sentences} synthesized sentences and {rows[0].others} sounds without speech."
    return f"{tables(rows)}\n\n{counted} {live}\n", live.core <= MAX_CORE


async def run_at(url: str, strategies: Sequence[str], *, turns: int, silence_ms: int) -> tuple[str, bool]:
    """Speak to a server. Return the report, and whether each turn was answered."""
    spoken = _spoken(await recordings(), silence_ms)
    (token,) = await login(url, "", 1)
    answers = []
    async with ClientSession() as http:
        speaker = Speaker(http, url, token)
        for strategy in strategies:
            await speaker.ask(spoken[0], strategy=strategy, silence_ms=silence_ms)  # Models are loaded.
            given = [
                await speaker.ask(spoken[number % len(spoken)], strategy=strategy, silence_ms=silence_ms)
                for number in range(turns)
            ]
            answers.append((strategy, given))
    faults = {answer.outcome for _, given in answers for answer in given} - {"end"}
    report = "\n".join(["", *sorted(faults)]) if faults else ""
    return f"{answers_table(answers)}{report}\n", not faults


def _spoken(made: Sequence[Recording], silence_ms: int) -> Sequence[Recording]:
    """Return English sentences whose pauses are shorter than `silence_ms`, of each voice and noise alternately."""
    usable = [each for each in made if each.end_ms is not None and each.pause_ms < silence_ms]
    english = [each for each in usable if not each.name.startswith("espeak de")]
    return english[::3] + english[1::3] + english[2::3]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.turns", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--streams", type=int, default=20, help="turns that are fed at once (default: %(default)s)")
    add("--for-s", type=float, default=10, help="seconds for which they are fed (default: %(default)s)")
    add("--url", help="a server that is spoken to instead, such as that of make run")
    add(
        "--strategies", nargs="+", default=["local", "scripted"], help="those that answer (default: local scripted)"
    )
    add("--turns", type=int, default=20, help="turns with each strategy (default: %(default)s)")
    add("--silence-ms", type=int, default=700, help="what ends them (default: %(default)s)")
    add("--report", type=Path, help="document into which the figures are written")
    args = parser.parse_args(arguments)
    prepare()
    machine = describe(Cores.split())
    marks = ANSWER_MARKS if args.url else MARKS
    try:
        report, is_met = asyncio.run(_measured(args))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    print(f"{machine}\n\n{report}", end="")
    if args.report:
        write_between(args.report, marks, f"\n{machine}\n\n{report}\n")
    return int(not is_met)


async def _measured(args: argparse.Namespace) -> tuple[str, bool]:
    if args.url:
        url = args.url.rstrip("/")
        return await run_at(url, args.strategies, turns=args.turns, silence_ms=args.silence_ms)
    return await run(streams=args.streams, for_s=args.for_s)


if __name__ == "__main__":
    sys.exit(main())
