"""Measure the location of IP addresses: lookups in a file, and requests over HTTP.

`python -m bench.iplocation` writes a file of IP2Location with many ranges, looks up random addresses in it in this
process, and then starts a server that has the first core for itself and asks it for random addresses.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path

from bench.arrivals import prepare
from bench.client import Target
from bench.deployment import Deployment, DeploymentSpec, measure
from bench.generated_section import write_between
from bench.keep_alive import request
from bench.machine import Cores, describe
from bench.request_rows import Row, repeat, table
from bench.scenarios import seconds
from deploy.ip_ranges import Place, write_bin
from deploy.running import Failed
from vendors.geo.ip2location import Ip2LocationFile
from vendors.geo.ranges import has_place

MARKS = ("<!-- iplocation: written by bench.iplocation -->", "<!-- /iplocation -->")
MIN_RATE = 8_000
"""Lookups in a second by one process."""
_ADDRESSES = 100_000
_WARM_UP = 2_000
_CITIES = 5_000


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    prepare()
    cores = Cores.split()
    try:
        with tempfile.TemporaryDirectory(prefix="parley-geo-") as folder:
            path = Path(folder) / "ranges.bin"
            write_bin(path, _places(args.ranges))
            os.sched_setaffinity(0, cores.target)
            lookups = _look_up(path, for_s=args.for_s)
            os.sched_setaffinity(0, cores.target | cores.others)
            rows = [lookups, _measure_requests(path, cores, args)]
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    report = f"{describe(cores)}\n\n{table(rows)}\n\n{args.ranges:,} ranges.\n"
    print(report, end="")
    if args.report:
        write_between(args.report, MARKS, f"\n{report}\n")
    return int(not all(row.met for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.iplocation", description=__doc__)
    parser.add_argument("--ranges", type=int, default=500_000, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--clients", type=int, default=16, metavar="N", help="at once (default: %(default)s)")
    parser.add_argument("--for", dest="for_s", type=seconds, default=10, metavar="TIME", help="(default: 10 s)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the table between the marks in FILE")
    return parser


def _places(count: int) -> dict[str, Place]:
    """Return places of networks that are spread over all addresses."""
    step = 2**24 // count
    return {
        f"{IPv4Address(number * step << 8)}/24": (
            *("US", "United States of America", "California", f"City {number % _CITIES}"),
            *(37.5, -122.25, str(10_000 + number % _CITIES)),
        )
        for number in range(count)
    }


def _addresses() -> list[IPv4Address]:
    drawn = (IPv4Address(random.getrandbits(32)) for _ in range(_ADDRESSES))
    return [address for address in drawn if has_place(address)]


def _look_up(path: Path, *, for_s: float) -> Row:
    """Look up addresses in this process, one after the other."""
    row = Row("lookup of an address in a file", per_s=MIN_RATE)
    database, addresses = Ip2LocationFile(path), _addresses()
    begun, cpu_s = time.perf_counter(), time.process_time()
    while time.perf_counter() < begun + for_s:
        for address in random.choices(addresses, k=1000):  # noqa: S311
            before = time.perf_counter()
            database.find(address)
            row.times_s.append(time.perf_counter() - before)
    row.took_s, row.cpu_s = time.perf_counter() - begun, time.process_time() - cpu_s
    row.statuses[200] = len(row.times_s)
    database.close()
    return row


def _measure_requests(path: Path, cores: Cores, args: argparse.Namespace) -> Row:
    spec = DeploymentSpec(frozenset(), users=1, configs={"iplocation/default": {"database": str(path)}})
    return measure(spec, cores, lambda deployment: _requests(deployment, args))


async def _requests(deployment: Deployment, args: argparse.Namespace) -> Row:
    row, target, addresses = Row("`GET /bp/iplocation/ipv4`"), deployment.target, _addresses()

    def next_request() -> bytes:
        return _request(target, random.choice(addresses))  # noqa: S311

    warm_up = Row("")
    await repeat(warm_up, target, next_request, clients=args.clients, pids=deployment.pids, requests=_WARM_UP)
    await repeat(row, target, next_request, clients=args.clients, pids=deployment.pids, for_s=args.for_s)
    return row


def _request(target: Target, address: IPv4Address) -> bytes:
    head, end, _ = request(target, "GET", "/bp/iplocation/ipv4").partition(b"\r\n\r\n")
    return head + f"\r\nX-Forwarded-For: {address}".encode() + end


if __name__ == "__main__":
    sys.exit(main())
