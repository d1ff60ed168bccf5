"""Kills processes of the testbed at random moments."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

from bench.kills.testbed import KillsTestbed

_PROGRESS = 50


@dataclass(slots=True)
class Kills:
    """How often which process is killed. `parent_every`: one kill in so many is that of the parent."""

    number: int
    per_s: float
    parent_every: int
    made: Counter[str] = field(default_factory=Counter)
    revived: int = 0
    """How often the parent had ended, because a process was killed before it was ready for the first time."""

    async def run(self, testbed: KillsTestbed, chance: random.Random) -> None:
        """Kill a process at a time until `number` have been killed."""
        while self.made.total() < self.number:
            await asyncio.sleep(chance.expovariate(self.per_s))
            self.revived += await testbed.revive()
            await self._kill(testbed, chance)
            if self.made.total() % _PROGRESS == 0:
                print(f"{self.made.total()} kills", flush=True)

    async def _kill(self, testbed: KillsTestbed, chance: random.Random) -> None:
        if chance.randrange(self.parent_every) == 0:
            await testbed.kill_parent()
            self.made["parent"] += 1
            return
        children = testbed.children()
        victim = chance.randrange(len(children) + len(testbed.workers))
        if victim < len(children):
            testbed.kill_child(children[victim])
            self.made["process"] += 1
        else:
            await testbed.kill_worker(victim - len(children))
            self.made["worker"] += 1
