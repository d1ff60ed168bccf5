"""An older server and this one share a database, which is migrated under load. The older one takes over again."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from aiohttp import ClientSession

from app.settings import Settings
from deploy.stores import Stores
from storage.postgres.migrate import MIGRATIONS
from streams.tasks import background
from streams.wire.codec import dumps
from tests.deploy.commands import command
from tests.deploy.documented_commands import ROOT
from tests.deploy.serving import server_env
from tests.peers.sse_client import events
from tests.running.ports import free_ports
from tests.running.servers import settings_of
from tests.waiting import until
from vendors.sandbox.server import Running, listening

pytestmark = pytest.mark.timeout(240)

_START_S = 60
_GIT = shutil.which("git") or "git"
_USERS = 4
_ROUNDS = 3
"""How often each user talks in each phase, at least."""
TOKEN = "X-Service-Session-Token"
PARAMS = {"strategies": ["talk"], "type": "text", "language_code": "en", "target_language_code": "en"}


def git(*arguments: str) -> bytes:
    done = subprocess.run([_GIT, *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(
            f"git {arguments[0]} failed, so there is no older version to compare with: {done.stderr.decode()}"
        )
    return done.stdout


def older_commit() -> str:
    """Return the newest tag before this commit, or else the commit before the newest migration was added."""
    if tags := git("tag", "--list", "v*", "--sort=-creatordate", "--merged", "HEAD^").decode().split():
        return tags[0]
    newest = max(path.name for path in MIGRATIONS.glob("*.sql"))
    added = git("log", "--diff-filter=A", "--format=%H", "--", f"storage/**/{newest}").decode().split()[-1]
    return f"{added}^"


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of an older version."""
    folder = tmp_path_factory.mktemp("older")
    archive = git("archive", older_commit(), "actors", "app", "storage", "streams", "vendors")
    subprocess.run(["/bin/tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


@asynccontextmanager
async def run_older(older: Path, *arguments: str, **env: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", *arguments),
        cwd=older,
        env={**os.environ, **env, "PYTHONPATH": str(older)},  # noqa: TID251 - it is handed on
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def older_output(older: Path, *arguments: str, **env: str) -> str:
    async with run_older(older, *arguments, **env) as process:
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


def write_configs(folder: Path, sandbox: Running) -> Path:
    account = {"platform": "openai", "base_url": f"{sandbox.url}/openai/v1", "api_key": "sk-of-the-upgrade"}
    for path, value in {
        "apps/default": {"title": "App"},
        "auth/default": {"require_sign": False},
        "vendor_accounts/llm": account,
        "limits/default": {"rates": {"signup": {"count": 100_000, "per_s": 3600}}},
        "conversation/talk": {"chat": {"account": "llm", "model": "gpt-4o-mini"}},
    }.items():
        file = folder / "default" / f"{path}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(value))
    return folder


@dataclass
class Load:
    """Users who log in, talk and read their history, each call at the next of `urls`."""

    http: ClientSession
    urls: list[str]
    turns: int = 0
    running: int = 0
    stopped: bool = False
    failures: list[Any] = field(default_factory=list)

    async def run(self) -> None:
        self.running = _USERS
        await asyncio.gather(*(self._user() for _ in range(_USERS)))

    async def _user(self) -> None:
        for number in count():
            if self.stopped:
                self.running -= 1
                return
            try:
                await self._talk(number)
            except Exception as error:  # noqa: BLE001 - each is a failure of the upgrade, which the test shows
                self.failures.append(error)

    def _url(self, number: int) -> str:
        return self.urls[number % len(self.urls)]

    async def _talk(self, number: int) -> None:
        async with self.http.post(
            f"{self._url(number)}/bp/user/login", json={"device": {"id": uuid4().hex}}
        ) as answer:
            assert answer.status == 200, await answer.text()
            token = (await answer.json())["user"]["session"]["session_token"]
        given: dict[str, Any] = dict(PARAMS)
        for turn in (1, 2):
            body = dumps(given) + b"Tell me a story."
            url = f"{self._url(number + turn)}/bp/ai/conversation"
            async with self.http.post(url, data=body, headers={TOKEN: token}) as answer:
                seen = [event async for event in events(answer)]
            assert seen[-1].name == "end", (url, seen[-1])
            given["conversation_id"] = seen[-1].content["conversation_id"]
        query = f"/bp/ai/conversation/query?conversation_id={given['conversation_id']}"
        async with self.http.get(self._url(number) + query, headers={TOKEN: token}) as answer:
            assert answer.status == 200, await answer.text()
            assert len((await answer.json())["data"]["conversation_records"]) == 2
        self.turns += 2

    async def proceeds(self) -> None:
        """Wait until each user has talked a few times more."""
        wanted = self.turns + _USERS * _ROUNDS
        await until(lambda: self.turns >= wanted or self.failures)
        assert self.failures == []


async def answers(http: ClientSession, url: str) -> bool:
    with suppress(OSError):
        async with http.get(f"{url}/readyz") as answer:
            return answer.status == 200
    return False


async def test_users_notice_neither_an_upgrade_nor_its_roll_back(
    older: Path, stores: Stores, empty_database: str, tmp_path: Path
) -> None:
    old_port, new_port = free_ports(2)
    settings = settings_of(stores, empty_database, old_port, tmp_path / "data")
    newest = max(path.name for path in MIGRATIONS.glob("*.sql"))
    async with listening() as sandbox, ClientSession() as http:
        env = server_env(settings, PARLEY_PROCESSES="1")
        output = await older_output(older, "migrate", **env)
        applied = [] if f"applied {newest}" in output else [f"applied {newest}"]
        configs = write_configs(tmp_path / "configs", sandbox)
        await older_output(older, "config", "import", str(configs), **env)
        async with run_older(older, "serve", **env) as old:
            await until(lambda: answers(http, settings.public_url), within_s=_START_S)
            load = Load(http, [settings.public_url])
            async with background(old.stdout.read()) as old_output, background(load.run()) as users:
                await load.proceeds()
                await migrate_now(settings, applied)
                await load.proceeds()
                async with serving_beside(settings, new_port, http) as url:
                    load.urls.append(url)
                    await load.proceeds()
                    load.urls.remove(settings.public_url)
                    await load.proceeds()
                    old.terminate()
                    printed = (await old_output).decode()
                    await roll_back(older, env, settings.public_url, load, url)
                    await users
    assert load.failures == []
    assert '"level":"error"' not in printed, printed


async def roll_back(older: Path, env: dict[str, str], url: str, load: Load, newer_url: str) -> None:
    """Start the old server again, on tables with all migrations, and take the users away from the new one."""
    async with run_older(older, "serve", **env) as again, background(again.stdout.read()) as output:
        await until(lambda: answers(load.http, url), within_s=_START_S)
        load.urls.append(url)
        load.urls.remove(newer_url)
        await load.proceeds()
        load.stopped = True
        await until(lambda: load.running == 0)
        again.terminate()
        printed = (await output).decode()
    assert '"level":"error"' not in printed, printed


async def migrate_now(settings: Settings, applied: list[str]) -> None:
    """Run the migrations of this version, which print the lines `applied` and maybe others."""
    async with command("app", "migrate", **server_env(settings)) as migration:
        assert await migration.end() == 0
    assert set(applied) <= set(migration.lines)


@asynccontextmanager
async def serving_beside(settings: Settings, port: int, http: ClientSession) -> AsyncIterator[str]:
    """Run the new server on the stores of the old one, and yield its URL."""
    newer = replace(settings, port=port, public_url=f"http://127.0.0.1:{port}")
    async with command("app", "serve", **server_env(newer, PARLEY_PROCESSES="1")) as new:
        await new.event("server.listening")
        await until(lambda: answers(http, newer.public_url), within_s=_START_S)
        yield newer.public_url
    assert not [line for line in new.lines if '"level":"error"' in line]
