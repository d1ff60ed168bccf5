"""Deployments to measure: a server that the benchmark starts with its dependencies, or one that runs elsewhere.

`python -m bench.deployment --url URL --admin-token-file FILE` creates the app `bench` on a running server. The
limits of that app are raised, so that the server does not refuse a load that comes from few users.
"""

import argparse
import asyncio
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop
from aiohttp import ClientSession

from bench.client import Target
from bench.machine import Cores, raise_priority
from bench.scenarios import ScenarioName
from deploy.running import Failed, running, until_ready, while_running
from storage.configs.kinds.limits import RATES
from streams.wire.codec import loads

if TYPE_CHECKING:
    from deploy.stores import Stores

Result = TypeVar("Result")

APP = "bench"
_ROOT = Path(__file__).parents[1]
_READY_S = 60
RAISED_LIMITS = {
    "streams_per_user": 1_000_000,
    "streams_per_process": 100_000,
    "streams_per_app": 1_000_000,
    "stream_s": 3600,
    "rates": {name: {"count": 1_000_000, "per_s": 1} for name in RATES},
}
_MODEL = re.compile(r"\d+x\d+(?:w\d+)?|held")


@dataclass(frozen=True)
class Deployment:
    """A running server. `pids`, `vendor_pids` and `store_pids` are processes on this machine.

    A POST to `release_url` makes the model `held` answer. `baseline` is the relay to compare with; it calls the
    same vendor.
    """

    target: Target
    pids: tuple[int, ...] = ()
    """The processes of the nodes, in the order of `nodes`."""
    nodes: tuple[Target, ...] = ()
    """Each node of a deployment that the benchmark has started. The first one is `target`."""
    vendor_pids: tuple[int, ...] = ()
    store_pids: tuple[int, ...] = ()
    release_url: str = ""
    baseline: Target | None = None
    baseline_pids: tuple[int, ...] = ()
    relays: tuple[Target, ...] = ()
    """As many relays as there are nodes. The first one is `baseline`."""
    stores: "Stores | None" = None
    admin_token: str = ""
    log: Path | None = None
    """The server's log, if the benchmark has started it."""


@dataclass(frozen=True)
class DeploymentSpec:
    """What to start. The server has a strategy for each of `models`, which `bench.upstream` serves."""

    models: frozenset[str]
    scenarios: frozenset[ScenarioName] = frozenset({"text"})
    users: int = 100
    processes: int = 1
    nodes: int = 1
    """Each node is a server with a port of its own. All have the same settings."""
    baseline: bool = False
    profile: Path | None = None
    """The file for the server's profile; SIGUSR2 starts and stops the profiler. None: no profiler."""
    descriptors: int = 0
    """The server's limit of open files and sockets; 0: the limit of this process."""
    configs: Mapping[str, Any] = field(default_factory=dict)
    """Further configs of the app by `kind/name`."""
    fill: Callable[[Mapping[str, str]], Coroutine[Any, Any, None]] | None = None
    """Fills the migrated stores before the server starts. It gets the environment of the server."""
    durable: bool = True
    """Whether PostgreSQL waits for its disk."""
    one_address: bool = True
    """Whether all clients share one address, so that the limit of connections per address must be raised."""


@asynccontextmanager
async def spawned(spec: DeploymentSpec, cores: Cores) -> AsyncIterator[Deployment]:
    """Start stores, vendor and server, with all limits raised, and stop them when the block ends."""
    from deploy.stores import embedded_stores  # noqa: PLC0415 - slow to import, and most loads use other servers
    from storage.postgres.migrate import migrate  # noqa: PLC0415

    os.sched_setaffinity(0, cores.others)  # Child processes inherit it.
    async with AsyncExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="parley-bench-"))
        folder = Path(name)
        stores = await stack.enter_async_context(embedded_stores(folder, durable=spec.durable))
        vendor, vendor_url = await start_vendor(stack)
        sandbox_url = await _sandbox(stack) if "pronunciation" in spec.scenarios else ""
        await migrate(stores.database_url)
        env = _environment(folder, stores, spec)
        if spec.fill is not None:
            await spec.fill(env)
        ports, log = [env["PORT"], *(str(free_port()) for _ in range(1, spec.nodes))], folder / "server.log"
        servers = [await _server(stack, spec, {**env, "PORT": port}, cores, log=log) for port in ports]
        url = f"http://127.0.0.1:{ports[0]}"
        admin_token = env["PARLEY_ADMIN_TOKEN"]
        await make_app(url, admin_token)
        await put_all(url, admin_token, {**strategies(spec, vendor_url, sandbox_url), **spec.configs})
        tokens = await make_tokens(spec.users, env, folder / "users")
        nodes = tuple(Target(f"http://127.0.0.1:{port}", tokens, APP) for port in ports)
        deployment = Deployment(
            nodes[0],
            pids=tuple(servers),
            nodes=nodes,
            vendor_pids=(vendor,),
            store_pids=tuple(process.pid for process in stores.processes.values()),
            release_url=f"{vendor_url}/release",
            stores=stores,
            admin_token=admin_token,
            log=log,
        )
        yield await _with_baseline(stack, deployment, vendor_url, cores) if spec.baseline else deployment


def measure(
    spec: DeploymentSpec, cores: Cores, measured: Callable[[Deployment], Coroutine[Any, Any, Result]]
) -> Result:
    """Start a deployment, and return what `measured` returns for it.

    asyncio's own event loop starts and stops the stores. `measured` runs on uvloop, in a thread of its own.
    """
    with asyncio.Runner() as runner:
        context = spawned(spec, cores)
        started = runner.run(context.__aenter__())
        try:
            for pid in (*started.pids, *started.baseline_pids, *started.vendor_pids, *started.store_pids):
                raise_priority(pid)  # If root runs this, other processes of the machine disturb it less.
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(lambda: uvloop.run(measured(started))).result()
        finally:
            runner.run(context.__aexit__(None, None, None))


async def start_vendor(stack: AsyncExitStack) -> tuple[int, str]:
    """Start the fast vendor, and return its process id and its URL."""
    command = [sys.executable, "-m", "bench.upstream"]
    vendor = await stack.enter_async_context(running(command, stdout=PIPE, cwd=_ROOT))
    assert vendor.stdout is not None
    return vendor.pid, f"http://127.0.0.1:{int(await vendor.stdout.readline())}"


async def _sandbox(stack: AsyncExitStack) -> str:
    """Start the vendor sandbox, the only fake vendor here that can assess pronunciation, and return its URL."""
    command = [sys.executable, "-m", "vendors.sandbox", "--port", "0"]
    sandbox = await stack.enter_async_context(running(command, stdout=PIPE, cwd=_ROOT))
    assert sandbox.stdout is not None
    url: str = loads(await sandbox.stdout.readline())["listening"]
    return url


def _environment(folder: Path, stores: "Stores", spec: DeploymentSpec) -> dict[str, str]:
    from deploy.local import development  # noqa: PLC0415 - as above

    env = development({"PARLEY_DATA_DIR": str(folder), "PORT": str(free_port()), "PATH": os.defpath})
    env |= {"DATABASE_URL": stores.database_url, "REDIS_URL": stores.redis_url}
    if spec.one_address:
        env["PARLEY_CONNECTIONS_PER_ADDRESS"] = "1000000"
    return env | ({"PARLEY_PROCESSES": str(spec.processes)} if spec.processes > 1 else {})


async def _server(
    stack: AsyncExitStack, spec: DeploymentSpec, env: Mapping[str, str], cores: Cores, *, log: Path
) -> int:
    profiled = ["-m", "bench.profiled_server", str(spec.profile)]
    command = [sys.executable, *(profiled if spec.profile else ["-m", "app", "serve"])]
    if spec.descriptors:
        command = ["sh", "-c", 'ulimit -n "$0" && exec "$@"', str(spec.descriptors), *command]
    output, url = stack.enter_context(log.open("ab")), f"http://127.0.0.1:{env['PORT']}"
    server = await _on_cores(stack, command, cores, env=env, cwd=_ROOT, stdout=output, stderr=output)
    try:
        await while_running({"the server": server}, asyncio.wait_for(until_ready(url), _READY_S))
    except (Failed, TimeoutError):
        _print_log(log)
        raise
    pid: int = server.pid
    return pid


def _print_log(log: Path) -> None:
    sys.stderr.write(log.read_text())


async def _on_cores(stack: AsyncExitStack, command: list[str], cores: Cores, **options: Any) -> Any:
    """Start a process on the target's cores. Its child processes inherit them."""
    os.sched_setaffinity(0, cores.target)
    try:
        return await stack.enter_async_context(running(command, stop_s=20, stop=signal.SIGTERM, **options))
    finally:
        os.sched_setaffinity(0, cores.others)


async def _with_baseline(
    stack: AsyncExitStack, deployment: Deployment, vendor_url: str, cores: Cores
) -> Deployment:
    command, relays, pids = [sys.executable, "-m", "bench.baseline", vendor_url], [], []
    for _ in deployment.nodes:
        relay = await _on_cores(stack, command, cores, stdout=PIPE, cwd=_ROOT)
        relays.append(Target(f"http://127.0.0.1:{int(await relay.stdout.readline())}", digests=False))
        pids.append(relay.pid)
    return replace(deployment, baseline=relays[0], relays=tuple(relays), baseline_pids=tuple(pids))


def free_port() -> int:
    """Return a TCP port that is free at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


async def make_tokens(count: int, env: Mapping[str, str], path: Path, *, app: str = APP) -> list[str]:
    """Create `count` users of an app and return their session tokens."""
    command = [sys.executable, "-m", "app", "users", "make", str(count), "--app", app, "--out", str(path)]
    async with running(command, env=env, cwd=_ROOT) as process:
        if await process.wait() != 0:
            raise Failed("cannot create users: `python -m app users make` failed")
    return read_tokens(path)


def read_tokens(path: Path) -> list[str]:
    """Return the last word of each line, skipping blank lines."""
    return [line.split()[-1] for line in path.read_text().splitlines() if line.strip()]


def strategies(spec: DeploymentSpec, vendor_url: str, sandbox_url: str) -> dict[str, Any]:
    """Return configs by `kind/name`. The strategies of a model, one of each kind, are named after it."""
    shared = {"base_url": f"{vendor_url}/v1", "api_key": "bench", "concurrency": 100_000, "waiting": 0}
    waits = {"connect_s": 60, "first_output_s": 300, "between_s": 300}
    configs: dict[str, Any] = {
        "vendor_accounts/llm": {"platform": "vendor_b_llm", **shared},
        "vendor_accounts/audio": {"platform": "vendor_b_audio", **shared},
        "recognition/bench": {"account": "audio", "model": "whisper-1", "waits": waits},
    }
    for model in sorted(filter(_MODEL.fullmatch, spec.models)):
        chat = {"account": "llm", "model": model, "waits": waits}
        configs[f"conversation/{model}"] = {"chat": chat, "recognition": "bench"}
        configs[f"speech/{model}"] = {
            "account": "audio",
            "model": model,
            "waits": waits,
            "audio_format": "wav",
            "min_realtime_factor": 0,
            "options": {"stream_format": "audio"},
        }
    if sandbox_url:
        azure = {"platform": "vendor_a_audio", "base_url": f"{sandbox_url}/azure", "api_key": "bench"}
        configs["vendor_accounts/azure"] = {**azure, "concurrency": 100_000}
        configs["pronunciation/bench"] = {"accounts": [{"account": "azure", "waits": waits}]}
    return configs


async def make_app(url: str, admin_token: str) -> None:
    """Create the app `bench` with raised limits. If it exists, its configs are replaced."""
    await put_all(
        url,
        admin_token,
        {
            "apps/default": {"title": "Load tests"},
            "auth/default": {"require_sign": False},
            "limits/default": RAISED_LIMITS,
        },
    )


async def put_all(url: str, admin_token: str, configs: Mapping[str, Any], *, app: str = APP) -> None:
    """Write configs of an app. The keys of `configs` are `kind/name`. Raise `Failed` if one is refused."""
    headers = {"Authorization": f"Bearer {admin_token}"}
    async with ClientSession(headers=headers) as http:
        for key, value in configs.items():
            path = f"{url}/admin/api/configs/{app}/{key}"
            async with http.put(path, json={"value": value}) as answer:
                if answer.status != 200:
                    raise Failed(f"{key}: {answer.status} {await answer.text()}")


async def login(url: str, app_id: str, count: int) -> Sequence[str]:
    """Log in `count` new devices and return their session tokens. The app's limit of sign-ups applies."""
    tokens = []
    async with ClientSession(headers={"X-Service-App-Id": app_id} if app_id else {}) as http:
        for _ in range(count):
            device = {"device": {"id": f"bench-{secrets.token_hex(8)}"}}
            async with http.post(f"{url}/bp/user/login", json=device) as answer:
                if answer.status != 200:
                    raise Failed(f"cannot log in: {answer.status} {await answer.text()}")
                tokens.append((await answer.json())["user"]["session"]["session_token"])
    return tokens


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.deployment", description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--admin-token-file", required=True, type=Path)
    args = parser.parse_args()
    try:
        asyncio.run(make_app(args.url.rstrip("/"), args.admin_token_file.read_text().strip()))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    print(f"app {APP}: limits raised. To create users: python -m app users make 100 --app {APP} --out users")
    return 0


if __name__ == "__main__":
    sys.exit(main())
