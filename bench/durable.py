"""Measure what `durable: true` costs per stream: commands and bytes of Valkey, and CPU of the server and of Valkey.

`python -m bench.durable` starts a server that has the first core for itself. The same paced streams run once
without and once with `durable`. The difference is the price of durable streams.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from bench.arrivals import prepare, run
from bench.deployment import Deployment, DeploymentSpec, measure, strategies
from bench.generated_section import write_between
from bench.machine import Cores, Usage, describe
from bench.scenarios import Load
from deploy.running import Failed

MARKS = ("<!-- durable: written by bench.durable -->", "<!-- /durable -->")
_SCRIPTS = ("evalsha", "eval")
_SETTLED_S = 1.0


@dataclass(frozen=True)
class Cost:
    """What a load has cost. `stream_s` is the sum of the seconds for which its streams ran."""

    name: str
    streams: int
    failed: int
    stream_s: float
    scripts: int
    """Scripts that Valkey has run."""
    commands: int
    """Commands that Valkey has executed, those of scripts included."""
    received_bytes: int
    sent_bytes: int
    valkey_cpu_s: float
    server_cpu_s: float

    def cells(self) -> list[str]:
        amounts = (self.scripts, self.commands, self.received_bytes / 1024, self.sent_bytes / 1024)
        cpus = (self.valkey_cpu_s * 1e6, self.server_cpu_s * 1e6)
        per_s = [f"{amount / self.stream_s:,.2f}" for amount in amounts]
        return [
            self.name,
            f"{self.streams:,}",
            str(self.failed),
            *per_s,
            *(f"{cpu / self.stream_s:,.0f}" for cpu in cpus),
        ]


HEADINGS = (
    "strategy",
    "streams",
    "failed",
    "scripts",
    "commands",
    "KiB to Valkey",
    "KiB from Valkey",
    "Valkey µs",
    "server µs",
)


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    prepare()
    cores = Cores.split()
    model = f"{round(args.for_s * 1000 / args.every_ms)}x{args.every_ms}"
    plain = DeploymentSpec(frozenset({model}), users=args.streams)
    config = strategies(plain, "", "")[f"conversation/{model}"]
    spec = replace(plain, configs={"conversation/durable": {**config, "durable": True}})
    try:
        costs = measure(spec, cores, lambda deployment: _measure(deployment, args, model))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    report = f"{describe(cores)}\n\n{table(costs)}\n"
    print(report, end="")
    if args.report:
        command = " ".join(["python -m bench.durable", *(arguments or sys.argv[1:])])
        write_between(args.report, MARKS, f"\n`{command}`\n\n{report}\n")
    return int(any(cost.failed for cost in costs))


def table(costs: Sequence[Cost]) -> str:
    """Return a table of the costs per stream and second."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *(cost.cells() for cost in costs)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.durable", description=__doc__)
    parser.add_argument("--streams", type=int, default=200, metavar="N", help="at once (default: %(default)s)")
    parser.add_argument("--for", dest="for_s", type=float, default=10, metavar="S", help="of each (default: 10 s)")
    parser.add_argument("--every-ms", type=int, default=40, metavar="MS", help="between deltas (default: 40 ms)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the table between the marks in FILE")
    return parser


async def _measure(deployment: Deployment, args: argparse.Namespace, model: str) -> list[Cost]:
    await _cost(deployment, Load("warm-up", [model, "durable"], streams=20, at_once=20), seconds=1)
    return [
        await _cost(
            deployment,
            Load(name, [strategy], streams=args.streams, at_once=args.streams, over_s=1),
            seconds=args.for_s,
        )
        for name, strategy in (("not durable", model), ("durable", "durable"))
    ]


async def _cost(deployment: Deployment, load: Load, *, seconds: float) -> Cost:
    assert deployment.stores is not None, "the deployment is our own"
    async with Redis.from_url(deployment.stores.redis_url) as valkey:
        before, cpu_s = await _counters(valkey), Usage.of(deployment.pids).cpu_s
        result = await run(load, deployment.target, pids=deployment.pids)
        await asyncio.sleep(_SETTLED_S)  # The last events of the streams are being copied.
        after = await _counters(valkey)
    spent = {name: after[name] - before[name] for name in after}
    return Cost(
        load.name,
        len(result.streams),
        len(result.streams) - len(result.good),
        len(result.streams) * seconds,
        round(spent["scripts"]),
        round(spent["commands"]),
        round(spent["received"]),
        round(spent["sent"]),
        spent["cpu"],
        Usage.of(deployment.pids).cpu_s - cpu_s,
    )


async def _counters(valkey: "Redis") -> Mapping[str, float]:
    stats: dict[str, Any] = await valkey.info("stats")
    calls: dict[str, Any] = await valkey.info("commandstats")
    cpu: dict[str, Any] = await valkey.info("cpu")
    return {
        "scripts": sum(calls.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in _SCRIPTS),
        "commands": sum(entry["calls"] for entry in calls.values()),
        "received": stats["total_net_input_bytes"],
        "sent": stats["total_net_output_bytes"],
        "cpu": cpu["used_cpu_user"] + cpu["used_cpu_sys"],
    }


if __name__ == "__main__":
    sys.exit(main())
