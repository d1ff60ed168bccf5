"""Read JSON of random shape as the events and responses of models and speech, for a given time.

`python -m bench.random_json --minutes 60` runs the tests of `tests/vendors` with very many examples, in rounds of a
minute or two. Each round has other examples. It stops at the first failure, which pytest prints with its example.
"""

import argparse
import subprocess
import sys
import time

_EXAMPLES = 1_000
_SOAK = ("-m", "soak", "-k", "very_many", "-n", "0", "tests/vendors")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="after which no further round begins")
    end = time.monotonic() + 60 * parser.parse_args().minutes
    rounds = 0
    while not rounds or time.monotonic() < end:
        command = [sys.executable, "-m", "pytest", *_SOAK, "--examples", str(_EXAMPLES // 100)]
        if failed := subprocess.run(command, check=False).returncode:
            return failed
        rounds += 1
        print(f"no failure in {rounds * _EXAMPLES} examples of each property", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
