"""The built TypeScript client, a Node program that uses it, and a server with a vendor that tests control."""

import fcntl
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.browser.unreliable_proxy import UnreliableProxy, proxy_to
from tests.clients.typescript.program import Program, running_program
from tests.code.source_files import ROOT
from tests.peers.vendor import Vendor, running_vendor
from tests.running.servers import Server
from vendors.sandbox.server import Running, listening

CLIENT = ROOT / "clients" / "typescript"
PROMPT = {"firstMs": 10, "longestMs": 50}
"""Tests need not wait as long as clients, which share a server with many others."""
_BUILD_S = 150
_NODE_MAJOR = 20


@pytest.fixture(scope="session")
def built() -> None:
    """Build the client if its sources have changed. Packages are only fetched by the first build."""
    commands = {name: shutil.which(name) for name in ("node", "npm", "make")}
    if missing := [name for name, path in commands.items() if path is None]:
        pytest.skip(f"{missing[0]} is not installed, so the TypeScript client cannot be built and run")
    version = run(commands["node"], "--version")[1].strip()
    if int(version.removeprefix("v").partition(".")[0]) < _NODE_MAJOR:
        pytest.skip(f"Node {version} is too old for the TypeScript client")
    with (CLIENT / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Another worker may build it.
        fetched, output = run(commands["make"], "clients/typescript/node_modules/.package-lock.json")
        if not fetched:
            pytest.skip(f"the compiler of the TypeScript client cannot be fetched: {output[-200:]}")
        succeeded, output = run(commands["make"], "clients/typescript/dist/.built")
    assert succeeded, output


def run(*command: str | None) -> tuple[bool, str]:
    """Run a command. Return whether it has succeeded, and its output."""
    done = subprocess.run(
        [part for part in command if part], cwd=ROOT, capture_output=True, timeout=_BUILD_S, check=False, text=True
    )
    return done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
async def program(built: None) -> AsyncIterator[Program]:
    async with running_program() as running:
        yield running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
async def vendor() -> AsyncIterator[Vendor]:
    async with running_vendor() as running:
        yield running


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[UnreliableProxy]:
    async with proxy_to(server.url) as running:
        yield running


@pytest.fixture
async def sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


Configure = Callable[..., Awaitable[None]]


@pytest.fixture
def configure(server: Server) -> Configure:
    """Write a config: `await configure("auth", "default", {...})`."""

    async def put(kind: str, name: str, value: dict[str, Any]) -> None:
        await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)

    return put


@pytest.fixture
async def strategy(configure: Configure, vendor: Vendor) -> Configure:
    """Create a conversation strategy: `await strategy("name", "say:Hello")`."""
    await configure("vendor_accounts", "test", {"platform": "vendor_b_llm", "base_url": vendor.url})

    async def make(name: str, model: str, *, chat: dict[str, Any] | None = None, **fields: Any) -> None:
        value = {"chat": {"account": "test", "model": model, **(chat or {})}, **fields}
        await configure("conversation", name, value)

    return make


@pytest.fixture
async def behind_proxy(program: Program, proxy: UnreliableProxy) -> Program:
    """The program, with a user who is signed in through the proxy."""
    await program.do("client", name="user", url=proxy.url, options={"backoff": PROMPT})
    await program.call("signIn", "device", {"id": "phone"})
    return program


@pytest.fixture
async def user(program: Program, server: Server) -> Program:
    """The program, with a signed-in user of its client `user`."""
    await program.do("client", name="user", url=server.url)
    await program.call("signIn", "device", {"id": f"device-{id(program)}"})
    return program
