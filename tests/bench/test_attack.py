"""The attack command, run against the URL of a server."""

import os
from pathlib import Path

import pytest

from bench.attack.__main__ import main
from bench.attack.attacker import is_loopback
from bench.attack.attacks import ATTACKS
from tests.deploy.commands import Command, command
from tests.running.servers import Server

QUICK = ("--streams", "2", "--calm", "500ms", "--for", "500ms")


def cells(attack: Command, table: int) -> dict[str, str]:
    """Return the only row of a printed table, by its headings."""
    lines = [line for line in attack.lines if line.startswith("|")]
    headings, _, row = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines[3 * table :][:3])
    return dict(zip(headings, row, strict=True))


async def test_an_attack_is_judged_by_the_healthy_streams(ready: Server, users: Path, tmp_path: Path):
    report = tmp_path / "report.md"
    where = ("--url", ready.url, "--token-file", str(users), "--strategy", "6x2", "--pid", str(os.getpid()))

    async with command("bench.attack", *where, *QUICK, "--only", "reset-heads", "--report", str(report)) as attack:
        code = await attack.end()

    seen, costs = cells(attack, 0), cells(attack, 1)
    verdict = seen["verdict"]
    assert code == int(verdict.startswith("missed")), attack.lines
    assert f"reset-heads: {verdict}" in attack.lines
    assert (seen["attack"], seen["failed"]) == ("reset-heads", "0")
    assert int(seen["healthy streams"]) > 2
    assert int(costs["connections of the attack"].partition(" opened")[0].replace(",", "")) > 16
    assert costs["server CPU"].endswith("%")
    assert "| reset-heads |" in report.read_text()


async def test_readers_that_read_nothing_are_counted(ready: Server, users: Path):
    where = ("--url", ready.url, "--token-file", str(users), "--strategy", "6x2")

    async with command("bench.attack", *where, *QUICK, "--only", "slow-live") as attack:
        await attack.end()

    costs = cells(attack, 1)
    assert costs["connections of the attack"].startswith("100 opened")
    assert "100 with status 200" in costs["connections of the attack"]
    assert costs["memory MiB before/peak/after"] == "-"


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the last line of a command that must exit with code 2."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("host", ["192.0.2.1", "parley.example", "[2001:db8::1]", "127.0.0.1.example"])
def test_a_remote_target_is_refused_without_confirmation(host: str, capsys: pytest.CaptureFixture[str]):
    line = refusal(capsys, "--url", f"http://{host}:8080", "--token-file", "users")

    assert "is not this machine: confirm with --i-own-it that you own the server" in line


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        *(("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True), ("", False)),
        *(("192.0.2.1", False), ("10.0.0.1", False), ("128.0.0.1", False), ("localhost.example", False)),
    ],
)
def test_only_loopback_is_this_machine(host: str, is_ours: bool):
    assert is_loopback(host) is is_ours


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "one of --url, --spawn and --list is required"),
        (("--url", "https://127.0.0.1:1"), "--url must be an http:// URL"),
        (("--url", "http://127.0.0.1:1"), "--url requires --token-file"),
        (("--spawn", "--only", "none"), "--only: there is no attack 'none'"),
    ],
)
def test_invalid_targets_are_reported_in_one_line(
    arguments: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
):
    assert expected in refusal(capsys, *arguments)


async def test_an_unreachable_server_is_reported(tmp_path: Path):
    path = tmp_path / "users"
    path.write_text("a token-a\nb token-b\n")
    where = ("--url", "http://127.0.0.1:9", "--token-file", str(path), *QUICK)

    async with command("bench.attack", *where, "--only", "reset-heads") as attack:
        assert await attack.end() == 1

    assert attack.lines[-1].startswith("bench: ")


def test_attacks_are_listed(capsys: pytest.CaptureFixture[str]):
    assert main(["--list"]) == 0

    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [one.name for one in ATTACKS]
