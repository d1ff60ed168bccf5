"""Compare detectors of voices for conversation without hands over the recordings of `bench.turns`.

`python -m bench.voice` measures what a browser downloads, the CPU time, what is mistaken for speech, and when the
start and the end of an utterance are found. `--in-browser` first plays every third sentence and all other sounds to
Chromium's microphone, and compares the detectors over what a page hears, which takes eleven minutes. With
`--over-answer` it measures interruption by voice with the client's detector. It needs Node, npm, `make clients` and
the extra `local`.
"""

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.generated_section import write_between
from bench.machine import Cores, describe
from bench.turns.recordings import Recording, recordings
from bench.voice.browser import as_heard_by_a_page
from bench.voice.figures import Heard, table
from bench.voice.over_answer import LEAKS_DB, cases, heading, row
from streams.wire.codec import dumps, loads

_FOLDER = Path(__file__).parent
_SENTENCES = 3
"""One of so many sentences is played to the browser, which takes as long as they are."""


async def run(*, in_browser: bool, over_answer: bool) -> str:
    made = await recordings()
    if in_browser:
        spoken = [recording for recording in made if recording.end_ms is not None]
        others = [recording for recording in made if recording.end_ms is None]
        made = await as_heard_by_a_page([*spoken[::_SENTENCES], *others])
    sentences = sum(recording.end_ms is not None for recording in made)
    counted = f"{sentences} synthesized sentences and {len(made) - sentences} sounds without speech."
    measured = await asyncio.to_thread(interruptions if over_answer else compare, made)
    return f"{measured}\n\n{counted}\n"


def compare(made: Sequence[Recording]) -> str:
    """Return the table of all detectors."""
    return table(hear(made), made)


def interruptions(made: Sequence[Recording]) -> str:
    """Return the table of what interrupts an answer, with a row for each level of it at the microphone."""
    sounds = sum(recording.end_ms is None for recording in made)
    lines = [heading()]
    for leak_db in LEAKS_DB:
        played = cases(made, leak_db)
        [heard] = hear(played, "--over-answer")
        lines.append(row(list(zip(played, heard.changes, strict=True)), leak_db, sounds=sounds))
    return "\n".join(lines)


def hear(made: Sequence[Recording], *options: str) -> list[Heard]:
    """Let detectors hear the recordings."""
    if not (_FOLDER / "node_modules").exists():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=_FOLDER, check=True)
    with TemporaryDirectory() as folder:
        names = [f"{number}.pcm" for number in range(len(made))]
        for name, recording in zip(names, made, strict=True):
            (Path(folder) / name).write_bytes(recording.pcm)
        (Path(folder) / "recordings.json").write_bytes(dumps(names))
        done = subprocess.run(["node", _FOLDER / "hear.mjs", folder, *options], check=True, stdout=subprocess.PIPE)
    lines = [loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return [
        Heard(line["name"], line["version"], line["downloadBytes"], line["cpu"], line["heard"]) for line in lines
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.voice", description=__doc__)
    parser.add_argument("--in-browser", action="store_true", help="as a page hears the recordings")
    parser.add_argument("--over-answer", action="store_true", help="while an answer plays")
    parser.add_argument("--report", type=Path, help="document into which the table is written")
    args = parser.parse_args(arguments)
    machine = describe(Cores.split())
    report = asyncio.run(run(in_browser=args.in_browser, over_answer=args.over_answer))
    print(f"{machine}\n\n{report}", end="")
    if args.report:
        where = "in-browser" if args.in_browser else "files"
        name = "over-answer" if args.over_answer else where
        write_between(args.report, marks(name), f"\n{machine}\n\n{report}\n")


def marks(name: str) -> tuple[str, str]:
    """Return the lines between which a table stands on the page `bench/voice/README.md`."""
    return f"<!-- voices {name}: written by bench.voice -->", f"<!-- /voices {name} -->"


if __name__ == "__main__":
    sys.exit(main())
