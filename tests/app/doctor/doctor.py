"""What the tests of `python -m app doctor` share: running its checks, and finding a point in the report."""

from dataclasses import dataclass, replace
from typing import Any

from app.doctor.checks import examine
from app.doctor.surroundings import Surroundings
from storage.operators.doctor_reports import Finding, State
from tests.running.servers import Server

GOOD, DOUBTFUL, BROKEN = State.GOOD, State.DOUBTFUL, State.BROKEN


@dataclass(frozen=True)
class Doctor:
    """The checks of the deployment of a test server, whose settings a test can change."""

    server: Server

    async def examine(self, *only: str, here: dict[str, Any] | None = None, **settings: Any) -> list[Finding]:
        """Run the named checks. `settings` replaces settings, and `here` what else the checks are given."""
        changed = replace(self.server.services.settings, **settings)
        return (await examine(Surroundings(changed, **(here or {})), only=only)).findings


def point(findings: list[Finding], name: str) -> Finding:
    """Return the finding about a point, which must be the only one. Anything but good says why, and what to do."""
    (found,) = [finding for finding in findings if finding.point == name]
    assert (found.state is State.GOOD) == (found.why == "") == (found.fix == ""), found
    return found


def bad_points(findings: list[Finding]) -> set[str]:
    """Return the points that are not good."""
    return {finding.point for finding in findings if finding.state is not State.GOOD}
