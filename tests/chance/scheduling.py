"""The distribution of tests to the workers of xdist, which also ends if a worker crashes."""

from collections.abc import Sequence
from contextlib import suppress

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

_FEWEST = 2
"""A worker starts a test when it knows the next one, or that there is none."""


class Scheduling(LoadGroupScheduling):
    """The scheduling of `--dist loadgroup`, corrected for a worker that crashes.

    xdist 3.8 also passes the tests that the worker has completed to another worker, which then waits for a test for
    ever. So does a new worker that gets a single test. And the test that has crashed the worker runs again.
    """

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Ignore a worker that was told to end before it was added, which xdist takes for an internal error."""
        if node in self.assigned_work:
            super().add_node_collection(node, collection)

    def remove_node(self, node: WorkerController) -> str | None:
        """Pass the tests that a worker has not begun to the others. Return the test in which it crashed."""
        units = self.assigned_work.pop(node)
        crashed = next((test for unit in units.values() for test, done in unit.items() if not done), None)
        for scope, unit in units.items():
            if left := [test for test, done in unit.items() if not done and test != crashed]:
                self.workqueue[scope] = dict.fromkeys(left, False)
        if crashed is not None:
            for other in self.assigned_work:
                self._reschedule(other)
        return crashed

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Leave it to `remove_node` to pass on the tests for a worker whose death is not reported yet."""
        with suppress(OSError):
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:
            return  # A new worker gets tests when it has found them.
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < _FEWEST:
            self._assign_work_unit(node)
        if not self.workqueue and not node.shutting_down:
            node.shutdown()
