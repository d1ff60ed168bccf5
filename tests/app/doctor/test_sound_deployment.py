"""The doctor is content with a deployment that is made from the files in `deploy`, and names what breaks later."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from secrets import token_hex

import pytest

from deploy.stores import Stores, embedded_stores
from streams.wire.codec import loads
from tests.code.source_files import ROOT
from tests.deploy.commands import Command, command
from tests.deploy.proxies.nginx import NGINX, running_nginx
from tests.deploy.serving import server_env
from tests.running.forks import run
from tests.running.ports import free_ports
from tests.running.servers import settings_of
from vendors.sandbox.server import listening

pytestmark = [pytest.mark.timeout(240), pytest.mark.skipif(NGINX is None, reason="nginx is not installed")]


@pytest.fixture
async def durable_stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with embedded_stores(tmp_path / "stores") as stores:
        yield stores


def configs_in(folder: Path, vendor_url: str) -> Path:
    """Copy the configs of a new deployment, with the URL of its vendor."""
    for file in (ROOT / "deploy" / "seed" / "production").rglob("*.yaml"):
        copy = folder / file.relative_to(ROOT / "deploy" / "seed" / "production")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text().replace("https://api.openai.com/v1", vendor_url))
    return folder


async def succeed(*arguments: str, env: dict[str, str]) -> None:
    code, printed, errors = await run(*arguments, env=env)
    assert code == 0, printed + errors


@asynccontextmanager
async def deployed(env: dict[str, str]) -> AsyncIterator[Command]:
    """Run a server and a worker, and yield the worker."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(command("app", "serve", **env))
        worker = await stack.enter_async_context(command("app", "worker", **env))
        await server.event("server.listening")
        await worker.event("worker.started")
        yield worker


async def examined(env: dict[str, str]) -> tuple[int, dict[str, str]]:
    """Run the doctor. Return its exit code, and the state of each point that is not good.

    The limits of the machine are left out, because they are those of whoever runs the tests.
    """
    code, out, errors = await run("app", "doctor", "--json", env=env)
    assert errors == ""
    findings = [each for each in loads(out.encode())["findings"] if each["area"] != "machine"]
    return code, {f"{each['area']}/{each['point']}": each["state"] for each in findings if each["state"] != "good"}


async def test_the_doctor_is_content_until_something_breaks(durable_stores: Stores, tmp_path: Path) -> None:
    port, metrics_port, worker_port = free_ports(3)
    settings = settings_of(durable_stores, durable_stores.database_url, port, tmp_path / "data")
    async with listening() as sandbox:
        with running_nginx(tmp_path, f"127.0.0.1:{port}") as nginx:
            env = server_env(
                settings,
                PARLEY_ENV="production",
                PARLEY_PROCESSES="1",
                PARLEY_MASTER_KEY=token_hex(32),
                PARLEY_ADMIN_TOKEN=token_hex(32),
                PARLEY_PUBLIC_URL=nginx.url,
                PARLEY_TRUSTED_PROXIES="127.0.0.1/32",
                PARLEY_METRICS_PORT=str(metrics_port),
                PARLEY_WORKER_PORT=str(worker_port),
                APP_SIGN_KEY=token_hex(32),
                VENDOR_KEY="sk-of-the-operator",
            )
            await succeed("app", "migrate", env=env)
            await succeed("app", "operators", "add", "ada", "--role", "admin", env=env)
            configs = configs_in(tmp_path / "configs", f"{sandbox.url}/openai/v1")
            await succeed("app", "config", "import", str(configs), env=env)
            async with deployed(env) as worker:
                assert await examined(env) == (0, {})
                nginx.reload({"proxy_request_buffering off;": "proxy_request_buffering on;"})
                worker.process.kill()
                await worker.process.wait()
                broken = await examined(env)
    assert broken == (1, {"proxy/uploads": "broken", "processes/worker": "broken"})
