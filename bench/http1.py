"""Measure the HTTP client for vendors: CPU time of this process per event and per stream.

`python -m bench.http1` reads chat replies of `bench.upstream` through `VendorHttp` and `OpenAIChat` and drops their
deltas. Each figure is the median of the rounds.
"""

import argparse
import asyncio
import gc
import os
import resource
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

import uvloop
from pydantic import SecretStr

from vendors.account import Account, ChatSpec
from vendors.chat.openai import OpenAIChat
from vendors.http.client import open_vendor_http
from vendors.protocols import ChatMessage, Finish

_ROOT = Path(__file__).parents[1]
_MESSAGES = [ChatMessage("system", "Be brief."), ChatMessage("user", "How are you today?")]
_SETTLE_S = 0.2


@dataclass(frozen=True)
class Load:
    name: str
    model: str
    """A model name of `bench.upstream`."""
    at_once: int
    streams: int

    @property
    def events(self) -> int:
        return int(self.model.partition("x")[0]) * self.streams


LOADS = (
    Load("20 ms paced, 200 at once", "50x20", 200, 400),
    Load("20 ms paced, 1,000 at once", "50x20", 1000, 1000),
    Load("unpaced, 500 at once", "200x0", 500, 1000),
    Load("one delta, 200 at once", "1x0", 200, 4000),
)


@asynccontextmanager
async def upstream() -> AsyncIterator[str]:
    """Run the vendor on the last core and this process on the first. Yield the vendor's base URL."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.upstream", stdout=PIPE, cwd=_ROOT)
    os.sched_setaffinity(0, {cores[0]})
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/v1"
    finally:
        process.terminate()
        await process.wait()


async def measure(load: Load, url: str) -> tuple[float, float]:
    """Run `load` and return the seconds of CPU time and of wall-clock time that it took."""
    permits = iter(range(load.streams))
    async with open_vendor_http() as http:
        chat = OpenAIChat(
            http,
            Account("bench", "vendor_b_llm", url, api_key=SecretStr("bench")),
            ChatSpec(model=load.model, connect_s=60),
        )

        async def read() -> None:
            for _ in permits:
                finished = False
                async with chat.reply(_MESSAGES) as items:
                    async for item in items:
                        finished = isinstance(item, Finish)
                assert finished, "the reply has no Finish item"

        async with asyncio.TaskGroup() as tasks:  # Open the connections before the measurement.
            for _ in range(load.at_once):
                tasks.create_task(read())
        permits = iter(range(load.streams))
        await asyncio.sleep(_SETTLE_S)
        cpu_s, begun = time.process_time(), time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(load.at_once):
                tasks.create_task(read())
        return time.process_time() - cpu_s, time.monotonic() - begun


async def main(rounds: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    print("| load | µs/event | µs/stream | events/s |\n|---|---|---|---|")
    async with upstream() as url:
        for load in LOADS:
            measured = [await measure(load, url) for _ in range(rounds)]
            cpu_s, clock_s = (statistics.median(seconds) for seconds in zip(*measured, strict=True))
            print(
                f"| {load.name} | {cpu_s * 1e6 / load.events:,.1f} "
                f"| {cpu_s * 1e6 / load.streams:,.0f} | {load.events / clock_s:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.http1", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    uvloop.run(main(parser.parse_args().rounds))
