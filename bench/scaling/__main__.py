"""Measure how the work of a stream changes with the number of nodes.

`python -m bench.scaling` starts PostgreSQL, Valkey, a vendor and the nodes, each a server with a port of its
own, and as many relays (`bench.baseline`). The nodes share the first core of this process, and everything else
shares the rest. The client opens 100 streams at a time on each node. Rounds with 1, 2 and 3 nodes follow each
other, so that a change of the machine's speed affects all of them.

The exit code is 1 if a stream fails, or if several nodes serve fewer streams per second of CPU time than 90% of
what one serves, and this is not explained by the same loss of the relays, which share the core but nothing
else.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import get_args

from redis.asyncio import Redis

from bench.arrivals import prepare
from bench.deployment import Deployment, DeploymentSpec, measure
from bench.machine import Cores, describe
from bench.scaling.report import passed, summary, write_report
from bench.scaling.rounds import AT_ONCE, LOADS, Round, TargetName, grouped, run_round
from bench.scenarios import seconds
from deploy.running import Failed

_WARM_UP_S = 3.0


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    args = _parser().parse_args(given)
    prepare()
    cores = Cores.split()
    spec = DeploymentSpec(frozenset(LOADS), users=AT_ONCE, nodes=max(args.nodes), baseline=True)
    machine = describe(cores)
    try:
        rounds = measure(spec, cores, lambda deployment: _measure(deployment, args, cores))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    groups = grouped(rounds)
    text = summary(groups, machine=machine, command=" ".join(["python -m bench.scaling", *given]))
    print(text)
    if args.report:
        write_report(args.report, text)
    return int(not passed(groups))


async def _measure(deployment: Deployment, args: argparse.Namespace, cores: Cores) -> list[Round]:
    assert deployment.stores is not None, "the benchmark has started them"
    async with Redis.from_url(deployment.stores.redis_url, decode_responses=True) as valkey:

        async def run(target: TargetName, model: str, nodes: int, for_s: float) -> Round:
            return await run_round(deployment, valkey, cores, target=target, model=model, nodes=nodes, for_s=for_s)

        every: list[tuple[TargetName, str, int]] = list(product(get_args(TargetName), LOADS, args.nodes))
        for target, model in product(get_args(TargetName), LOADS):
            await run(target, model, max(args.nodes), min(_WARM_UP_S, args.for_s))
        rounds: list[Round] = []
        for number in range(args.rounds):
            for target, model, nodes in every:
                rounds.append(await run(target, model, nodes, args.for_s))
            print(f"round {number + 1} of {args.rounds}", flush=True)
    return rounds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scaling", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--nodes", type=int, nargs="+", default=[1, 2, 3], metavar="N", help="(default: 1 2 3)")
    add("--rounds", type=int, default=5, metavar="N", help="with each number of nodes (default: %(default)s)")
    add("--for", dest="for_s", type=seconds, default=8, metavar="TIME", help="of a round (default: 8 s)")
    add("--report", type=Path, metavar="FILE", help="write the tables between the marks in FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
