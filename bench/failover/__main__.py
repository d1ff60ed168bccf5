"""The fault scorecard: every fault of a vendor at every stage, judged by what the client and the vendor observe.

    python -m bench.failover                                    # or make bench-failover; writes build/failover.md
    python -m bench.failover --report bench/failover/report.md  # updates the report of the repository

It starts stores, a server, the vendor sandbox and a DNS server; all traffic stays on this machine. The exit code is
1 if a cell fails.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from bench.failover.run import run

_DEFAULT_REPORT = Path("build/failover.md")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.failover", description="run every vendor fault at every stage"
    )
    parser.add_argument("--report", type=Path, default=_DEFAULT_REPORT, metavar="FILE", help="default: %(default)s")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(asyncio.run(run(_arguments().report)))
