"""What is measured: a server of our own with all that it needs, or one that runs elsewhere."""

import asyncio
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

from aiohttp import ClientSession

from app.processes import until_ready
from deploy.local import development
from deploy.running import Failed, running, while_running
from deploy.stores import embedded_stores
from storage.migrate import migrate

_ROOT = Path(__file__).parents[1]
_READY_S = 60
_LIFTED = {"streams_per_user": 1_000_000, "streams_per_process": 100_000, "streams_per_app": 1_000_000}


@dataclass(frozen=True)
class Deployment:
    """Where the server is. `pid`: of its process, on this machine. `release_url`: lets the model `held` answer."""

    url: str
    token: str
    admin_token: str = ""
    pid: int | None = None
    upstream_pid: int | None = None
    release_url: str = ""


@asynccontextmanager
async def spawned(models: set[str], *, server_cores: set[int], other_cores: set[int]) -> AsyncIterator[Deployment]:
    """Stores, upstream and server, with a strategy for each of `models`, and nobody's limit in the way."""
    os.sched_setaffinity(0, other_cores)  # what we start inherits it
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as name:
        folder, port = Path(name), _free_port()
        async with (
            embedded_stores(folder) as stores,
            running([sys.executable, "-m", "bench.upstream"], stdout=PIPE, cwd=_ROOT) as upstream,
        ):
            assert upstream.stdout is not None
            upstream_url = f"http://127.0.0.1:{int(await upstream.stdout.readline())}"
            await migrate(stores.database_url)
            env = development({"PARLEY_DATA_DIR": name, "PORT": str(port), "PATH": os.defpath})
            env |= {"DATABASE_URL": stores.database_url, "REDIS_URL": stores.redis_url}
            command = [sys.executable, "-m", "app", "serve"]
            with (folder / "server.log").open("wb") as log:
                async with running(command, stop_s=20, env=env, cwd=_ROOT, stdout=log, stderr=log) as server:
                    os.sched_setaffinity(server.pid, server_cores)
                    url, admin_token = f"http://127.0.0.1:{port}", env["PARLEY_ADMIN_TOKEN"]
                    try:
                        await while_running({"the server": server}, asyncio.wait_for(until_ready(url), _READY_S))
                    except (Failed, TimeoutError):
                        sys.stderr.write((folder / "server.log").read_text())
                        raise
                    async with _admin(admin_token) as http:
                        for key, value in _configs(models, upstream_url).items():
                            await _put(http, _config(url, key), value)
                    session, release_url = await login(url), f"{upstream_url}/release"
                    yield Deployment(url, session, admin_token, server.pid, upstream.pid, release_url)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _configs(models: set[str], upstream_url: str) -> dict[str, Any]:
    account = {
        "platform": "vendor_b_llm",
        "base_url": f"{upstream_url}/v1",
        "api_key": "bench",
        "concurrency": 100_000,
    }
    waits = {"connect_s": 60, "first_output_s": 120}
    return {
        "apps/default": {"title": "Bench"},
        "auth/default": {"require_sign": False},
        "vendor_accounts/bench": account,
        **{
            f"conversation/{model}": {"chat": {"account": "bench", "model": model, "waits": waits}}
            for model in models
        },
    }


@asynccontextmanager
async def lifted(deployment: Deployment) -> AsyncIterator[None]:
    """Nobody's limit is in the way during the block, if we may say so; after it all is as it was."""
    if not deployment.admin_token:
        yield
        return
    limits = _config(deployment.url, "limits/default")
    async with _admin(deployment.admin_token) as http:
        async with http.get(limits, raise_for_status=False) as answer:
            before = (await answer.json())["value"] if answer.status == 200 else None
        await _put(http, limits, {**(before or {}), **_LIFTED})
        try:
            yield
        finally:
            if before is None:
                (await http.delete(limits)).release()
            else:
                await _put(http, limits, before)


async def _put(http: ClientSession, url: str, value: Any) -> None:
    (await http.put(url, json={"value": value})).release()


def _admin(token: str) -> ClientSession:
    return ClientSession(headers={"Authorization": f"Bearer {token}"}, raise_for_status=True)


def _config(url: str, key: str) -> str:
    return f"{url}/admin/api/configs/default/{key}"


async def login(url: str) -> str:
    """A session of a device that nobody has seen."""
    device = {"device": {"id": f"bench-{secrets.token_hex(8)}"}}
    async with (
        ClientSession(raise_for_status=True) as http,
        http.post(f"{url}/bp/user/login", json=device) as answer,
    ):
        token: str = (await answer.json())["user"]["session"]["session_token"]
        return token
