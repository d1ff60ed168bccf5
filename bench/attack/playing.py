"""Plays an attack between two calm phases: what the healthy clients and the server's process show."""

import asyncio
import stat
import time
from dataclasses import dataclass, replace
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout

from bench.attack.attacker import Attacker, Strategies
from bench.attack.attacks import Attack
from bench.attack.connections import Outcomes
from bench.attack.judging import HEALTH_MS, Held, Seen
from bench.attack.witness import Witness
from bench.client import Target
from bench.machine import Spent
from streams.tasks import background

_LOOK_EVERY_S = 0.1
_LINGER_S = 0.5
"""How long the witness still looks once an attack has sent its last byte."""
_CALM_LOOK_S = 1.0
_MOST_CALM_LOOKS = 60
_MIB = 2**20
_METRICS_TIMEOUT = ClientTimeout(total=10)
_KEPT = ("parley_finished_logs_bytes ", "parley_finished_logs_bytes{")


@dataclass(frozen=True, slots=True)
class Setting:
    """`target` has the users of the attack. `pid`: of the server, 0 where unknown.

    `memory_mib`: an attack under which the server grows by more is stopped. `for_s`: how long floods last.
    """

    target: Target
    strategies: Strategies
    pid: int = 0
    calm_s: float = 4
    for_s: float = 8
    memory_mib: int = 1024


def held(pid: int) -> Held | None:
    """What the process holds now, with the processes it started; None for pid 0."""
    if not pid:
        return None
    spent = Spent.of([pid])
    log = Path(f"/proc/{pid}/fd/1").stat()
    _, waited_ns, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
    return Held(
        spent.rss_bytes,
        sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        spent.cpu_s,
        waited_ns / 1e9,
        log.st_size if stat.S_ISREG(log.st_mode) else None,
    )


async def _held_and_kept(setting: Setting) -> Held | None:
    """As `held`, with the event logs that a server of `--spawn` keeps; those of others count as memory."""
    if (found := held(setting.pid)) is None:
        return None
    async with ClientSession(timeout=_METRICS_TIMEOUT) as http, http.get(f"{setting.target.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    kept = sum(float(line.split()[-1]) for line in lines if line.startswith(_KEPT))
    return replace(found, kept_bytes=int(kept))


async def play(attack: Attack, setting: Setting, witness: Witness) -> Seen:
    """Run `attack` once. `OSError` where the server cannot be reached at all."""
    attacker = Attacker(setting.target, setting.strategies, for_s=setting.for_s, pid=setting.pid)
    if attack.prepare is not None:
        await attack.prepare(attacker)
    was_calm = await _until_calm(witness)
    await asyncio.sleep(setting.calm_s)
    calm, before, began = await witness.window(), await _held_and_kept(setting), time.monotonic()
    watch = _Watch(attacker, setting, before)
    try:
        stopped = await watch.until_over(attack)
        await asyncio.sleep(_LINGER_S)
        watch.look()
        under, seconds = await witness.window(), time.monotonic() - began
        outcomes = Outcomes.of(attacker.connections, attacker.refused)
    finally:
        attacker.close()
    await asyncio.sleep(attack.settle_s)
    after = await _held_and_kept(setting)
    recovered = await _until_calm(witness) or not was_calm
    await asyncio.sleep(max(setting.calm_s, seconds - setting.calm_s))
    own = attacker.finished[0].size_bytes if attack.own_logs and attacker.finished else 0
    return Seen(
        calm,
        under,
        await witness.window(),
        outcomes,
        seconds,
        before,
        watch.peak,
        after,
        most_open=watch.most_open,
        requests=attacker.requests,
        victims_failed=attacker.victims_failed,
        log_of_a_reader_bytes=own,
        stopped=stopped,
        recovered=recovered,
    )


async def _until_calm(witness: Witness) -> bool:
    """Wait, for a minute at most, until what was before no longer holds up the healthy clients; whether it does."""
    for _ in range(_MOST_CALM_LOOKS):
        await witness.window()
        await asyncio.sleep(_CALM_LOOK_S)
        seen = await witness.window()
        if seen.health.count and seen.health.at(100) < HEALTH_MS and not seen.failed:
            return True
    return False


class _Watch:
    """Looks at server and connections while an attack runs, and ends it when it goes too far."""

    def __init__(self, attacker: Attacker, setting: Setting, before: Held | None) -> None:
        self._attacker = attacker
        self._setting = setting
        self._before = before
        self.peak = before
        self.most_open = 0

    async def until_over(self, attack: Attack) -> str:
        """Run it to its end; why it was stopped before that, or nothing."""
        until = time.monotonic() + attack.limit_s
        async with background(attack.run(self._attacker)) as running:
            while not running.done():
                if time.monotonic() > until:
                    return f"not over in {attack.limit_s:.0f} s"
                if (grown_mib := self.look()) > self._setting.memory_mib:
                    return f"stopped: memory grew by {grown_mib:,.0f} MiB"
                await asyncio.wait([running], timeout=_LOOK_EVERY_S)
        return ""

    def look(self) -> float:
        """Note the most of each figure; by how many MiB the server has grown."""
        self._attacker.look()
        self.most_open = max(self.most_open, self._attacker.open_connections)
        if (now := held(self._setting.pid)) is None or self.peak is None or self._before is None:
            return 0
        self.peak = replace(
            now,
            rss_bytes=max(now.rss_bytes, self.peak.rss_bytes),
            descriptors=max(now.descriptors, self.peak.descriptors),
        )
        return (now.rss_bytes - self._before.rss_bytes) / _MIB
