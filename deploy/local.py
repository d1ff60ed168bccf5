"""Runs all of Parley on this machine until Ctrl-C. `make run` calls `python -m deploy.local`.

The stores, the local engines, the sandbox and the server are child processes. They start in this order, are stopped
in reverse order, and end with this process at the latest. Data and secrets are kept in `.parley`
(`PARLEY_DATA_DIR`).
"""

import argparse
import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from tempfile import NamedTemporaryFile

from app.commands.exit_codes import FAILED, REFUSED
from app.environment import SettingsError, own_url
from app.observing import logs
from app.process.children import end_with_parent
from app.process.sockets import check_port
from app.settings import Settings
from app.stores import open_stores
from deploy.engines import local_engines
from deploy.ip_ranges import seed_ip_ranges
from deploy.running import Failed, running, until_ready, while_running
from deploy.sandbox import sandbox
from deploy.seeds import seed, seed_signed_app
from deploy.stores import Stores, embedded_stores
from deploy.webhooks import register_webhooks
from deploy.welcome import OPERATOR_FILE, SERVER_KEY_FILE, welcome
from storage.postgres.migrate import MigrationRefused, migrate
from streams.wire.errors import ServiceError

_READY_S = 60
_DRAIN_S = "3"
_STOP_S = 30
"""How long the server may take to end after its drain: to store remaining records and logs, and to close."""
_EXPORTED = {"DATABASE_URL", "REDIS_URL", "PORT", "APP_SIGN_KEY"}
_SECRET_FILES = {
    "PARLEY_MASTER_KEY": "master-key",
    "PARLEY_ADMIN_TOKEN": OPERATOR_FILE,
    "PARLEY_SERVER_KEY": SERVER_KEY_FILE,
    "APP_SIGN_KEY": "sign-key",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description=__doc__)
    parser.add_argument("--with-parent", action="store_true", help="end when the parent process ends")
    if parser.parse_args().with_parent:
        end_with_parent(signal.SIGTERM)
    logs.configure(level="warning")
    try:
        asyncio.run(_run_until_signal(dict(os.environ)))  # noqa: TID251 - a process entry point
    except SettingsError as error:
        print(error, file=sys.stderr)
        return REFUSED
    except (Failed, MigrationRefused, ServiceError) as error:
        print(f"parley: {error}", file=sys.stderr)
        return FAILED
    return 0


async def _run_until_signal(env: dict[str, str]) -> None:
    """Run until SIGINT, SIGTERM or SIGHUP. The first signal stops all processes in order, the second kills them."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine always runs in a task"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await _run(env)
    except asyncio.CancelledError:
        print("parley: stopped", flush=True)


async def _run(env: dict[str, str]) -> None:
    if (mode := env.get("PARLEY_ENV") or "development") != "development":
        raise SettingsError(
            f"parley: PARLEY_ENV is {mode}, but make run is for development: see docs/operating/install.md"
        )
    env = {"PARLEY_LOG_LEVEL": "warning"} | development(
        env
    )  # A line for each request would scroll the welcome text away.
    settings = Settings.from_env({"DATABASE_URL": "postgresql://embedded", "REDIS_URL": "redis://embedded", **env})
    check_port(settings.host, settings.port)
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(_stores(env, settings.data_dir))
        settings = replace(settings, database_url=stores.database_url, redis_url=stores.redis_url)
        engines = await stack.enter_async_context(local_engines(settings.data_dir / "engines.log"))
        platforms = await stack.enter_async_context(sandbox(settings.data_dir / "sandbox.log"))
        await migrate(settings.database_url)
        await _seed(settings, env, sandbox_url=platforms.url)
        env |= {
            "DATABASE_URL": stores.database_url,
            "REDIS_URL": stores.redis_url,
            "PARLEY_LOCAL_URL": engines.url,
            "PARLEY_SANDBOX_URL": platforms.url,
            "PARLEY_INBOX_URL": platforms.inbox_url,
        }
        server = await stack.enter_async_context(
            running([sys.executable, "-m", "app", "serve"], stop_s=settings.drain_timeout_s + _STOP_S, env=env)
        )
        worker = await stack.enter_async_context(
            running([sys.executable, "-m", "app", "worker"], stop_s=_STOP_S, env=env)
        )
        stack.enter_context(_environment_file(settings.data_dir / "env", env))
        processes = {
            **stores.processes,
            "the sandbox": platforms.process,
            "the server": server,
            "the worker": worker,
        }
        await while_running(processes, _ready(own_url(settings.host, settings.port)))
        text = await welcome(settings, engines, env)
        print(text, flush=True)
        await while_running(processes, asyncio.Event().wait())


def development(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a development server: `env` with defaults for variables that it does not set.

    Generated secrets are kept in files in the data folder. Raises `SettingsError` if it cannot be written.
    """
    data_dir = Path(env.get("PARLEY_DATA_DIR") or ".parley").absolute()
    return {
        "PARLEY_ENV": "development",
        "PARLEY_DRAIN_TIMEOUT_S": _DRAIN_S,
        **_kept_secrets(data_dir),
        **{name: value for name, value in env.items() if value},
        "PARLEY_DATA_DIR": str(data_dir),
    }


def _kept_secrets(data_dir: Path) -> dict[str, str]:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return {name: kept_secret(data_dir / file) for name, file in _SECRET_FILES.items()}
    except FileExistsError:
        raise SettingsError(f"parley: PARLEY_DATA_DIR: {data_dir} is not a folder") from None
    except OSError as error:
        cause = (error.strerror or "unknown error").lower()
        raise SettingsError(f"parley: PARLEY_DATA_DIR: cannot write to {data_dir}: {cause}") from None


@contextmanager
def _environment_file(path: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Write a shell file with the settings of the running server, so that other commands find it."""
    names = [name for name in env if name.startswith("PARLEY_") or name in _EXPORTED]
    path.touch(mode=0o600)
    path.write_text("".join(f"export {name}={quote(env[name])}\n" for name in sorted(names)))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def kept_secret(path: Path) -> str:
    """Return 32 random bytes in hexadecimal, which are generated once and then read from the file `path`."""
    with NamedTemporaryFile("w", dir=path.parent) as new:  # Such a file is only readable by its owner.
        new.write(secrets.token_hex(32))
        new.flush()
        with suppress(FileExistsError):
            os.link(new.name, path)
    return path.read_text().strip()


@asynccontextmanager
async def _stores(env: Mapping[str, str], data_dir: Path) -> AsyncIterator[Stores]:
    database_url, redis_url = env.get("DATABASE_URL"), env.get("REDIS_URL")
    if bool(database_url) != bool(redis_url):
        raise SettingsError("parley: set both DATABASE_URL and REDIS_URL, or neither")
    if database_url and redis_url:
        yield Stores(database_url, redis_url)
        return
    async with embedded_stores(data_dir) as stores:
        yield stores


async def _seed(settings: Settings, env: Mapping[str, str], *, sandbox_url: str) -> None:
    async with open_stores(settings) as stores:
        await seed(stores.configs, env)
        await seed_signed_app(stores.configs, env)
        await seed_ip_ranges(stores.configs, settings.data_dir)
        server_url = own_url(settings.host, settings.port)
        await register_webhooks(stores.configs, sandbox_url=sandbox_url, server_url=server_url)


async def _ready(url: str) -> None:
    try:
        async with asyncio.timeout(_READY_S):
            await until_ready(url)
    except TimeoutError:
        raise Failed(f"the server was not ready within {_READY_S} s") from None


if __name__ == "__main__":
    sys.exit(main())
