"""The examples in TypeScript in the API reference: the compiler accepts all of them, and those most used run."""

import asyncio
from pathlib import Path

import pytest

from tests.clients.samples import URL, samples
from tests.clients.typescript.conftest import CLIENT, Configure
from tests.running.servers import SERVER_KEY, Server

RUN = [
    "POST /bp/ai/conversation",
    "GET /bp/ai/conversations",
    "GET /bp/ai/offers",
    "POST /bp/user/login",
    "GET /bp/user/me",
    "GET /bp/user/me/sessions",
    "GET /bp/user/me/social_profiles",
    "GET /bp/asset",
    "POST /bp/user/detect",
    "POST /bp/user/logout",
    "POST /bp/server/user/login",
]


@pytest.fixture
def project(built: None, tmp_path: Path) -> Path:
    """An empty project with the built client."""
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/parley-client").symlink_to(CLIENT)
    return tmp_path


async def test_the_compiler_accepts_all_examples(project: Path) -> None:
    written = samples("typescript")
    assert len(written) > 80
    for number, source in enumerate(written.values()):
        (project / f"example_{number}.ts").write_text(f"{source}\nexport {{}};\n")
    options = ["--noEmit", "--strict", "--target", "ES2022", "--lib", "ES2022,DOM", "--module", "NodeNext"]
    files = [f"example_{number}.ts" for number in range(len(written))]
    await succeeds(str(CLIENT / "node_modules/.bin/tsc"), *options, *files, cwd=project)


async def test_the_most_used_examples_run(
    project: Path, server: Server, configure: Configure, strategy: Configure
) -> None:
    keys = [{"kid": "development", "alg": "HS256", "secret": SERVER_KEY}]
    await configure("auth", "default", {"require_sign": False, "server_keys": keys})
    await strategy("scripted", "say:Hello")
    for number, operation in enumerate(RUN):
        source = samples("typescript")[operation].replace(URL, server.url)
        source = source.replace('"the secret of one of the app\'s server_keys"', f'"{SERVER_KEY}"')
        (project / f"run_{number}.mjs").write_text(source)
        await succeeds("node", f"run_{number}.mjs", cwd=project)


async def succeeds(*command: str, cwd: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{' '.join(command[:2])}\n{output.decode()}"
