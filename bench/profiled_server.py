"""Run the server with a profiler that SIGUSR2 starts and stops: `python -m bench.profiled_server FILE`.

FILE receives the output of cProfile. A file of the same name with the suffix `.cpu` receives the seconds of CPU
time that the process used meanwhile.
"""

import cProfile
import signal
import sys
import time
from pathlib import Path

from app.__main__ import main


class Profiler:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._profile = cProfile.Profile()
        self._begun_s: float | None = None

    def toggle(self, *_: object) -> None:
        """Start the profiler, or stop it and write its files."""
        if self._begun_s is None:
            self._begun_s = time.process_time()
            self._profile.enable()
            return
        self._profile.disable()
        spent_s = time.process_time() - self._begun_s
        self._profile.dump_stats(str(self._path))
        unfinished = self._path.with_suffix(".unfinished")
        unfinished.write_text(repr(spent_s))
        unfinished.rename(self._path.with_suffix(".cpu"))


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, Profiler(Path(sys.argv[1])).toggle)
    sys.exit(main(["serve"]))
