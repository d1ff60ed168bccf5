"""Run an attack between two calm phases, and measure the healthy clients and the server's process."""

import asyncio
import stat
import time
from dataclasses import dataclass, replace
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout

from bench.attack.attacker import Attacker, Strategies
from bench.attack.attacks import Attack
from bench.attack.connections import Outcomes
from bench.attack.healthy_clients import HealthyClients
from bench.attack.judge import HEALTH_MS, Measurement, ServerState
from bench.client import Target
from bench.machine import Usage
from streams.tasks import background

_POLL_S = 0.1
_LINGER_S = 0.5
"""How long the healthy clients are still measured after the end of an attack."""
_CALM_WINDOW_S = 1.0
_MAX_CALM_WINDOWS = 60
_MIB = 2**20
_METRICS_TIMEOUT = ClientTimeout(total=10)
_EVENT_LOGS = ("parley_finished_logs_bytes ", "parley_finished_logs_bytes{")


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of all attacks. `target` has the attack's users. `pid` is the server's, 0 if unknown.

    `calm_s` is the shortest measurement before and after an attack, `for_s` the length of a flood. An attack is
    stopped when the server has grown by more than `memory_mib`.
    """

    target: Target
    strategies: Strategies
    pid: int = 0
    calm_s: float = 4
    for_s: float = 8
    memory_mib: int = 1024


def server_state(pid: int) -> ServerState | None:
    """Return the state of the process and its descendants; None for pid 0."""
    if not pid:
        return None
    spent = Usage.of([pid])
    log = Path(f"/proc/{pid}/fd/1").stat()
    _, waited_ns, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
    return ServerState(
        spent.rss_bytes,
        sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        spent.cpu_s,
        waited_ns / 1e9,
        log.st_size if stat.S_ISREG(log.st_mode) else None,
    )


async def _state_with_event_logs(setting: Setting) -> ServerState | None:
    """Return the server's state with the size of its event logs, as reported by `/metrics` on the target's port.

    Without that metric, event logs count as other memory.
    """
    if (state := server_state(setting.pid)) is None:
        return None
    async with ClientSession(timeout=_METRICS_TIMEOUT) as http, http.get(f"{setting.target.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    event_log_bytes = sum(float(line.split()[-1]) for line in lines if line.startswith(_EVENT_LOGS))
    return replace(state, event_log_bytes=int(event_log_bytes))


async def run_attack(attack: Attack, setting: Setting, clients: HealthyClients) -> Measurement:
    """Run `attack` once. Raise `OSError` if the server cannot be reached."""
    attacker = Attacker(setting.target, setting.strategies, for_s=setting.for_s, pid=setting.pid)
    if attack.prepare is not None:
        await attack.prepare(attacker)
    was_calm = await _until_calm(clients)
    await asyncio.sleep(setting.calm_s)
    calm, before, began = await clients.window(), await _state_with_event_logs(setting), time.monotonic()
    watch = _Watch(attacker, setting, before)
    try:
        stopped = await watch.until_over(attack)
        await asyncio.sleep(_LINGER_S)
        watch.update()
        under, seconds = await clients.window(), time.monotonic() - began
        outcomes = Outcomes.of(attacker.connections, attacker.refused)
    finally:
        attacker.close()
    await asyncio.sleep(attack.settle_s)
    after = await _state_with_event_logs(setting)
    recovered = await _until_calm(clients) or not was_calm
    await asyncio.sleep(max(setting.calm_s, seconds - setting.calm_s))
    own_log_bytes = attacker.finished[0].size_bytes if attack.own_logs and attacker.finished else 0
    return Measurement(
        calm,
        under,
        await clients.window(),
        outcomes,
        seconds,
        before,
        watch.peak,
        after,
        max_open=watch.max_open,
        requests=attacker.requests,
        victims_failed=attacker.victims_failed,
        log_of_a_reader_bytes=own_log_bytes,
        stopped=stopped,
        recovered=recovered,
    )


async def _until_calm(clients: HealthyClients) -> bool:
    """Wait until no attack affects the healthy clients any more. Return False if this takes more than a minute."""
    for _ in range(_MAX_CALM_WINDOWS):
        await clients.window()
        await asyncio.sleep(_CALM_WINDOW_S)
        window = await clients.window()
        if window.health.count and window.health.at(100) < HEALTH_MS and not window.failed:
            return True
    return False


class _Watch:
    """Watches the server and the connections during an attack, and stops it at its limits."""

    def __init__(self, attacker: Attacker, setting: Setting, before: ServerState | None) -> None:
        self._attacker = attacker
        self._setting = setting
        self._before = before
        self.peak = before
        self.max_open = 0

    async def until_over(self, attack: Attack) -> str:
        """Run the attack to its end. Return why it was stopped early, or an empty string."""
        until = time.monotonic() + attack.limit_s
        async with background(attack.run(self._attacker)) as running:
            while not running.done():
                if time.monotonic() > until:
                    return f"not finished within {attack.limit_s:.0f} s"
                if (grown_mib := self.update()) > self._setting.memory_mib:
                    return f"stopped: memory grew by {grown_mib:,.0f} MiB"
                await asyncio.wait([running], timeout=_POLL_S)
        return ""

    def update(self) -> float:
        """Update the peaks, and return by how many MiB the server has grown."""
        self._attacker.update()
        self.max_open = max(self.max_open, self._attacker.open_connections)
        if (now := server_state(self._setting.pid)) is None or self.peak is None or self._before is None:
            return 0
        self.peak = replace(
            now,
            rss_bytes=max(now.rss_bytes, self.peak.rss_bytes),
            descriptors=max(now.descriptors, self.peak.descriptors),
        )
        return (now.rss_bytes - self._before.rss_bytes) / _MIB
