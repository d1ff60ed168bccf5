"""Fixtures: a server with the app `bench`, the fast vendor in another process, and users for a load."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from app.commands.users import make_users
from bench.deployment import APP, DeploymentSpec, make_app, strategies
from storage.operators.audit import COMMAND
from streams.wire.codec import loads
from tests.deploy.commands import command
from tests.running.servers import ADMIN_TOKEN, Server
from vendors.sandbox.server import listening

MODELS = frozenset({"6x0", "6x2", "held"})
Load = Callable[..., Awaitable[dict]]


@pytest.fixture(scope="module")
async def ready(module_server: Server) -> AsyncIterator[Server]:
    """The server of the module with the app and a strategy for each model, of each kind."""
    scenarios = frozenset({"text", "audio", "tts", "pronunciation"})
    async with command("bench.upstream") as vendor, listening() as sandbox:
        port = int(await vendor.until(""))
        await make_app(module_server.url, ADMIN_TOKEN)
        configs = strategies(DeploymentSpec(MODELS, scenarios), f"http://127.0.0.1:{port}", sandbox.url)
        for key, value in configs.items():
            kind, _, name = key.partition("/")
            await module_server.services.configs.put(APP, kind, name, value, author="tests", origin=COMMAND)
        yield module_server


@pytest.fixture
async def users(ready: Server, tmp_path: Path) -> Path:
    """Write a token file and return its path."""
    path = tmp_path / "users"
    made = await make_users(ready.services, APP, 3)
    path.write_text("".join(f"{uid} {token}\n" for uid, token in made))
    return path


@pytest.fixture
async def load(ready: Server, users: Path, tmp_path: Path) -> Load:
    """Returns a function that runs `python -m bench.load` against the server and returns its figures."""

    async def run(*arguments: str) -> dict:
        path = tmp_path / "result.json"
        where = ("--url", ready.url, "--token-file", str(users), "--json", str(path))
        async with command("bench.load", *where, *arguments) as generator:
            code = await generator.end()
        assert path.exists(), "\n".join(generator.lines)
        found = loads(path.read_bytes())
        assert code == (0 if found["ended"] else 1), "\n".join(generator.lines)
        return found

    return run
