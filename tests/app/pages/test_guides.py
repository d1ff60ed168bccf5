"""The commands of the guides, unchanged and in order, in one shell at a development server."""

import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.app.callers import working
from tests.code.source_files import ROOT
from tests.peers.curl import NEEDS_CURL, clone_in, functions_of_guides, printed_by
from tests.running.local_engines import save_time
from tests.running.servers import ADMIN_TOKEN, Databases, Server, new_server
from vendors.sandbox.server import listening

GUIDES = {path.stem: path for path in [*(ROOT / "docs/guides").glob("*.md"), ROOT / "README.md"]}
TESTED_ELSEWHERE = {
    "ai-tasks": ("tests/app/pages/test_ai_tasks_guide.py", "tests/app/ai/images/test_guide.py"),
    "first-app": ("tests/clients/test_first_app_guide.py",),
    "leaderboards": ("tests/app/leaderboards/test_guide.py",),
    "payments": ("tests/app/payments/test_payments_guide.py",),
    "signatures": ("tests/clients/test_signature_guide.py",),
}
"""Guides whose commands have inputs or outputs of their own."""
FUNCTION = r"(?m)^(\w+)\(\)"
FIRST_LINE = "URL=${URL:-http://127.0.0.1:${PORT:-8080}}\n"


@dataclass(frozen=True)
class Printed:
    """What the commands of a guide print: how often each pattern is found."""

    guide: str
    found: dict[str, int]


EXPECTED = [
    Printed("README", {r"^event: end$": 1}),
    Printed("accounts", {'"session_token":': 7, '"revision":': 5}),
    Printed("events", {r"^whsec_": 1, '"revision":': 2}),
    Printed("mail", {r'^"subject":"Welcome': 1, '"revision":': 3, '"suppressions":': 1}),
    Printed("strategies", {'"revision":': 12}),
    Printed("streams", {r"^event: user_input$": 1, r'"NBest":': 1}),
]


def blocks(guide: str) -> list[str]:
    """Return the commands of a guide, except `make`, which starts a server."""
    found = re.findall(r"^```sh\n(.*?)^```$", GUIDES[guide].read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in found if not block.startswith("make ")]


@pytest.fixture
async def server(databases: Databases, local_vendors: str, tmp_path: Path) -> AsyncIterator[Server]:
    """A server as of `make run`. The commands run in another folder than that of its clone."""
    async with (
        listening() as sandbox,
        new_server(
            databases,
            tmp_path / "data",
            sandbox_url=sandbox.url,
            inbox_url=sandbox.inbox_url,
            local_url=local_vendors,
        ) as running,
    ):
        (clone_in(tmp_path) / ".venv").symlink_to(sys.prefix)
        await save_time(running.url, app_id="default", operator_token=ADMIN_TOKEN)
        yield running


@NEEDS_CURL
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected.guide)
async def test_all_commands_of_a_guide_succeed(server: Server, expected: Printed, tmp_path: Path) -> None:
    _, session = await server.login()
    commands = functions_of_guides() + "".join(blocks(expected.guide))
    async with working(server.services):
        printed = await printed_by(
            commands, tmp_path, URL=server.url, SESSION=session, CLONE=str(tmp_path / "clone")
        )
    assert "error_type" not in printed, printed
    assert {
        pattern: len(re.findall(pattern, printed, re.MULTILINE)) for pattern in expected.found
    } == expected.found, printed


def test_each_guide_with_commands_is_tested() -> None:
    with_commands = {guide for guide in GUIDES if blocks(guide)}
    assert with_commands == {expected.guide for expected in EXPECTED} | TESTED_ELSEWHERE.keys()
    assert [test for tests in TESTED_ELSEWHERE.values() for test in tests if not (ROOT / test).exists()] == []


@pytest.mark.parametrize("guide", GUIDES.keys() - {"signatures", "first-app"})
def test_commands_take_the_address_of_the_server_from_their_first_line(guide: str) -> None:
    commands = "".join(blocks(guide))
    if commands:
        assert commands.startswith(FIRST_LINE)
        assert commands.count(FIRST_LINE) == 1
        assert "8080" not in commands.replace(FIRST_LINE, "")


def test_each_guide_reads_messages_of_recipients_of_its_own() -> None:
    """Messages of another guide, which a reader may have followed before, are not taken for those of this one."""
    read = [
        recipient
        for guide in GUIDES
        for recipient in set(re.findall(r'/dev/(?:mail|sms)(?:\?to=([^" ]+))?"', "".join(blocks(guide))))
    ]
    assert len(read) >= 3
    assert "" not in read
    assert len(set(read)) == len(read)


@pytest.mark.parametrize("guide", GUIDES.keys() - {"README"})
def test_no_guide_replaces_a_function_of_all_guides(guide: str) -> None:
    """Readers follow the guides in one shell."""
    assert set(re.findall(FUNCTION, "".join(blocks(guide)))).isdisjoint(re.findall(FUNCTION, functions_of_guides()))


@pytest.mark.parametrize("guide", GUIDES)
def test_commands_wait_by_asking_again_and_not_for_ever(guide: str) -> None:
    commands = "".join(blocks(guide))
    without_poll = "".join(part for part in re.split(r"^poll\(\) .*\n", commands, flags=re.MULTILINE))
    assert "sleep" not in without_poll
    assert "until " not in without_poll
