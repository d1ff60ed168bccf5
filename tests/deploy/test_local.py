"""`make run` starts everything on one machine: stores, engines and a server."""

import asyncio
import hmac
import os
import re
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import ClientSession

from app.http.callers.signatures import signed_text
from tests.calendar.clock import epoch_s
from tests.code.source_files import ROOT
from tests.deploy.commands import Command, command, left_of
from tests.environment import core_packages, moved_clock
from tests.running.ports import free_ports

pytestmark = pytest.mark.timeout(180)  # Stores, engines and the server start, and the machine may be busy.

_LEFT = 'echo "left: ${DATABASE_URL:-no settings}, $USER_ID, $APP_ID, ${#APP_SIGN_KEY} characters, $CLONE"'
"""What the welcome leaves in a shell."""


def _environment(tmp_path: Path, **more: str) -> dict[str, str]:
    unset = {"DATABASE_URL": "", "REDIS_URL": "", "PARLEY_PUBLIC_URL": "", "PARLEY_PROCESSES": ""}
    return {
        **core_packages(),
        **unset,
        "PORT": str(free_ports(1)[0]),
        "PARLEY_DATA_DIR": str(tmp_path / "data"),
        **more,
    }


def _welcome(lines: list[str]) -> str:
    """Return what `make run` prints when everything is ready."""
    first = next(number for number, line in enumerate(lines) if "Parley listens on" in line)
    last = next(number for number, line in enumerate(lines) if "Press Ctrl-C" in line)
    return "\n".join(lines[first : last + 1])


async def _shell(commands: str, folder: Path, *, options: str = "-eu") -> str:
    """Run commands in a shell without variables, and return what they print. Fails if one of them does."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc", options, "-c", commands),
        cwd=folder,
        env={"PATH": os.defpath, **moved_clock()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, (commands, output, errors)
    return output.decode()


def _user(lines: list[str]) -> str:
    """Return the user id in the printed lines: that of the device that `make run` logs in."""
    [line] = [line for line in lines if line.startswith("export USER_ID=")]
    return line.partition("=")[2]


async def _up(local: Command) -> str:
    """Wait until the server is ready, and return its URL."""
    url = (await local.until("Parley listens on ")).rpartition(" ")[2]
    await local.until("Press Ctrl-C to stop.")
    return url


async def _the_welcome_can_be_pasted_into_a_shell(local: Command, tmp_path: Path) -> None:
    """Run all that is printed, prose included, in an empty folder, in a shell that ends at the first fault."""
    assert (tmp_path / "data" / "env").stat().st_mode & 0o077 == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    welcome = _welcome(local.lines)
    output = await _shell(f"{welcome}\n{_LEFT}", elsewhere)
    assert "story about the sea" in output
    assert output.count("event: end") == 2
    assert "event: audio_chunk" in output
    assert '"is_new_user":false' in output
    assert '"scripted-text"' in output
    assert (elsewhere / "configs" / "default" / "conversation" / "local.yaml").exists()
    assert output.endswith(f"left: no settings, {_user(local.lines)}, signed, 64 characters, {ROOT}\n")
    [make_token] = [line.removeprefix("# ") for line in welcome.splitlines() if "-m app token make" in line]
    assert (await _shell(f"{make_token}; echo $SERVER", elsewhere)).count(".") == 2, "a JWT"


async def _next_steps_lead_somewhere(local: Command, url: str) -> None:
    steps = re.findall(r"^# +[123]\. .*: +(\S+)$", _welcome(local.lines), re.MULTILINE)
    assert len(steps) == 3
    async with ClientSession() as http:
        for page in steps:
            assert page.startswith(url)
            async with http.get(page) as answer:
                assert (answer.status, answer.content_type) == (200, "text/html")


async def _the_second_app_requires_signatures(local: Command, url: str, tmp_path: Path) -> None:
    env = tmp_path / "data" / "env"
    key = (await _shell(f". {env}; printf %s $APP_SIGN_KEY", tmp_path)).encode()
    body, path = b'{"device":{"id":"a phone"}}', "/bp/user/login"
    now = int(epoch_s())
    text = signed_text(now, None, method="POST", path_and_query=path, body=body)
    signature = f"t={now},v1={hmac.digest(key, text, 'sha256').hex()}"
    async with ClientSession(headers={"X-Service-App-Id": "signed"}) as http:
        for headers, status in (({}, 401), ({"X-Service-Sign": signature}, 200)):
            async with http.post(url + path, data=body, headers=headers) as answer:
                assert answer.status == status, await answer.text()


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
        await _the_welcome_can_be_pasted_into_a_shell(local, tmp_path)
        await _next_steps_lead_somewhere(local, url)
        await _the_second_app_requires_signatures(local, url, tmp_path)
        await _anybody_can_sign_in_at_every_third_party(url)
        await _second_instance_is_refused(tmp_path)
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
    assert len(set(kept[0].values())) == len(kept[0]) == 4
    assert all(len(bytes.fromhex(secret)) == 32 for secret in kept[0].values())
