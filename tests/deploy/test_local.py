"""`make run` starts everything on one machine: stores, engines and a server."""

import asyncio
import re
import shlex
import signal
import socket
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import ClientSession

from tests.deploy.commands import Command, command, left_of
from tests.environment import core_packages
from tests.running.ports import free_ports

pytestmark = pytest.mark.timeout(180)  # Stores, engines and the server start, and the machine may be busy.


def _environment(tmp_path: Path, **more: str) -> dict[str, str]:
    unset = {"DATABASE_URL": "", "REDIS_URL": "", "PARLEY_PUBLIC_URL": "", "PARLEY_PROCESSES": ""}
    return {
        **core_packages(),
        **unset,
        "PORT": str(free_ports(1)[0]),
        "PARLEY_DATA_DIR": str(tmp_path / "data"),
        **more,
    }


def _curl_lines(lines: list[str]) -> list[list[str]]:
    """Return the arguments of every printed `curl` command, with the exported variables inserted."""
    text = "\n".join(lines).replace("\\\n", "")
    for line in lines:
        if line.startswith("export "):
            name, _, value = line.removeprefix("export ").partition("=")
            text = text.replace(f"${name}", value)
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("curl ")]


def _operator_token(header: str) -> str:
    """Return the header with `$(cat '<file>')` replaced by the content of the file."""
    return re.sub(r"\$\(cat '(.*)'\)", lambda match: Path(match[1]).read_text(), header)


async def _curl(http: ClientSession, arguments: list[str]) -> tuple[int, str]:
    url = next(word for word in arguments if word.startswith("http"))
    pairs = list(pairwise(arguments))
    headers = dict(_operator_token(value).split(": ", 1) for option, value in pairs if option == "-H")
    body = next((value for option, value in pairs if option in {"-d", "--data-binary"}), None)
    async with http.request("POST" if body else "GET", url, headers=headers, data=body) as answer:
        return answer.status, await answer.text()


def _user(lines: list[str]) -> str:
    """Return the user id in the printed lines: that of the device that `make run` logs in."""
    line = next(line for line in lines if "/bp/server/user/" in line)
    return line.split("/bp/server/user/")[1].split()[0]


async def _up(local: Command) -> str:
    """Wait until the server is ready, and return its URL."""
    url = (await local.until("Parley listens on ")).rpartition(" ")[2]
    await local.until("Press Ctrl-C to stop.")
    return url


async def _first_requests_work(local: Command, url: str) -> None:
    """Run the printed `curl` commands, which must succeed."""
    async with ClientSession() as http:
        async with http.get(f"{url}/readyz") as answer:
            assert answer.status == 200
        converse, speak, user, configs = [await _curl(http, line) for line in _curl_lines(local.lines)]
    assert converse[0] == speak[0] == user[0] == configs[0] == 200
    assert "event: end" in converse[1]
    assert "story about the sea" in converse[1]
    assert "event: audio_chunk" in speak[1]
    assert '"is_new_user":false' in user[1]
    assert '"scripted-text"' in configs[1]


async def _anybody_can_sign_in_at_every_third_party(url: str) -> None:
    async with ClientSession() as http, http.get(f"{url}/dev/accounts/platforms") as answer:
        platforms = (await answer.json())["platforms"]
        assert len(platforms) == 12
        assert not [platform for platform, played in platforms.items() if played["problem"]]
        for platform in platforms:
            async with http.post(f"{url}/dev/accounts/{platform}/_issue", json={"subject": "1234567"}) as issued:
                body = await issued.json()
            async with http.post(f"{url}/bp/user/login", json=body) as login:
                assert login.status == 200, await login.text()


async def _second_instance_is_refused(tmp_path: Path) -> None:
    """Start a second server on the same data folder, which must fail."""
    async with command("deploy.local", **_environment(tmp_path)) as second:
        assert await second.end() == 1
    assert second.lines == [f"parley: {tmp_path}/data is in use by another running instance"]


async def _printed_commands_work_in_another_folder(local: Command, tmp_path: Path) -> None:
    """Run the printed commands in an empty folder. They use the stores and the keys of the server."""
    assert (tmp_path / "data" / "env").stat().st_mode & 0o077 == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    [commands] = [line for line in local.lines if line.startswith(". ")]
    [make_token] = [line.removeprefix("# ") for line in local.lines if "-m app token make" in line]
    outputs = []
    for shell in (commands, make_token):
        process = await asyncio.create_subprocess_shell(shell, stdout=asyncio.subprocess.PIPE, cwd=elsewhere)
        output, _ = await process.communicate()
        assert process.returncode == 0, shell
        outputs.append(output.decode())
    assert len(outputs[0].split()) == 2, "a user id and a session token"
    assert (elsewhere / "configs" / "default" / "conversation" / "local.yaml").exists()
    assert outputs[1].count(".") == 2, "a JWT"


async def _the_doctor_finds_nothing_broken(tmp_path: Path) -> None:
    parts = " ".join(f"--only {part}" for part in ("database", "secrets", "vendors", "mail", "webhooks"))
    shell = f". {tmp_path}/data/env && {sys.executable} -m app doctor {parts}"
    process = await asyncio.create_subprocess_shell(shell, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert (process.returncode, "broken " in output.decode()) == (0, False), output.decode()


async def _no_process_remains_after_a_kill(local: Command) -> None:
    processes = local.descendants()
    assert len(processes) > 3
    local.process.kill()
    assert not await left_of(processes)


async def test_users_survive_ctrl_c_and_no_process_remains_after_it_or_a_kill(tmp_path: Path):
    env = _environment(tmp_path)
    async with command("deploy.local", **env) as local:
        url = await _up(local)
        await _first_requests_work(local, url)
        await _anybody_can_sign_in_at_every_third_party(url)
        await _second_instance_is_refused(tmp_path)
        await _printed_commands_work_in_another_folder(local, tmp_path)
        await _the_doctor_finds_nothing_broken(tmp_path)
        first, processes = _user(local.lines), local.descendants()
        local.process.send_signal(signal.SIGINT)
        assert await local.end() == 0
        assert not await left_of(processes)
    assert local.lines[-1] == "parley: stopped"
    assert not (tmp_path / "data" / "env").exists()
    async with command("deploy.local", **env) as local:
        await _up(local)
        assert _user(local.lines) == first
        await _no_process_remains_after_a_kill(local)


async def test_used_port_is_reported_in_one_line(tmp_path: Path):
    env = _environment(tmp_path)
    with closing(socket.create_server(("127.0.0.1", int(env["PORT"])), reuse_port=True)):
        async with command("deploy.local", **env) as local:
            assert await local.end() == 2
    line = (
        f"parley: cannot listen on 127.0.0.1 port {env['PORT']}: Address already in use by another program,"
        " or by a server that has not stopped yet (set PORT to change this)"
    )
    assert local.lines == [line]
    assert not (tmp_path / "data" / "postgres").exists()


async def test_invalid_variable_is_named_in_one_line(tmp_path: Path):
    file = tmp_path / "file"
    file.touch()
    faults = {
        f"{file} is not a folder": {"PARLEY_DATA_DIR": str(file)},
        f"cannot write to {file}/data: not a directory": {"PARLEY_DATA_DIR": f"{file}/data"},
        "cannot write to /proc: no such file or directory": {"PARLEY_DATA_DIR": "/proc"},
        "must be one of debug, info, warning, error": {"PARLEY_LOG_LEVEL": "loud"},
    }
    for fault, given in faults.items():
        async with command("deploy.local", **_environment(tmp_path, **given)) as local:
            assert await local.end() == 2, local.lines
        assert local.lines == [f"parley: {next(iter(given))}{' ' if fault.startswith('must') else ': '}{fault}"]


async def test_the_settings_of_a_deployment_are_refused_before_anything_is_written(
    tmp_path: Path, database_url: str
):
    given = {"PARLEY_ENV": "production", "DATABASE_URL": database_url, "REDIS_URL": "redis://127.0.0.1:1"}
    async with command("deploy.local", **_environment(tmp_path, **given)) as local:
        assert await local.end() == 2
    refused = "parley: PARLEY_ENV is production, but make run is for development: see docs/operating/install.md"
    assert local.lines == [refused]
    assert not (tmp_path / "data").exists()


async def test_secrets_are_stored_in_a_file_that_only_the_owner_reads(tmp_path: Path):
    env = _environment(tmp_path)
    with closing(socket.create_server(("127.0.0.1", int(env["PORT"])))):
        kept = []
        for _ in range(2):
            async with command("deploy.local", **env) as local:
                await local.end()
            files = sorted(path for path in (tmp_path / "data").iterdir() if path.is_file())
            assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
            kept.append({path.name: path.read_text() for path in files})
    assert kept[0] == kept[1]
    assert len(set(kept[0].values())) == len(kept[0]) == 3
    assert all(len(bytes.fromhex(secret)) == 32 for secret in kept[0].values())
