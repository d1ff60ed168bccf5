"""The examples in Python and for the shell in the API reference: they are correct, and those most used run."""

import asyncio
import re
import shutil
import sys
from pathlib import Path

import pytest

from app.http.callers.tokens import make_server_token
from app.http.openapi.document import openapi
from app.http.openapi.samples import known_calls
from app.routes import ROUTES
from tests.app.ai.conftest import sandbox
from tests.app.ai.pronunciation.assessments import assessment_accounts
from tests.clients.conftest import configure
from tests.clients.operations import expected
from tests.clients.samples import URL, samples
from tests.code.source_files import ROOT
from tests.running.servers import ADMIN_TOKEN, SERVER_KEY, Server
from tests.streams.audio.pcm_samples import tone
from vendors.sandbox.server import Running

__all__ = ["sandbox"]

CLIENT = ROOT / "clients" / "python"
RUN = [
    "POST /bp/ai/conversation",
    "GET /bp/ai/conversations",
    "GET /bp/ai/stream/{stream_id}",
    "POST /bp/user/login",
    "GET /bp/user/me",
    "GET /bp/user/me/sessions",
    "GET /bp/user/me/social_profiles",
    "GET /bp/asset",
    "POST /bp/user/detect",
    "POST /bp/user/logout",
    "POST /bp/server/user/login",
]
CURL = [
    "POST /bp/ai/conversation",
    "GET /bp/ai/conversations",
    "POST /bp/user/login",
    "GET /bp/user/me",
    "GET /bp/user/me/sessions",
    "GET /bp/asset",
    "GET /healthz",
    "HEAD /healthz",
    "GET /bp/server/user/{user_id}",
    "GET /admin/api/configs",
]


@pytest.fixture
async def server(shared_server: Server, strategy) -> Server:
    """A server as of `make run`: without signatures, and with the strategy of the examples."""
    keys = [{"kid": "development", "alg": "HS256", "secret": SERVER_KEY}]
    await configure(shared_server, "auth", {"require_sign": False, "server_keys": keys})
    await strategy("scripted", "say:Hello")
    return shared_server


def test_each_call_is_one_of_an_operation() -> None:
    paths = openapi(ROUTES, public_url=URL)["paths"]
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]
    assert known_calls().keys() <= dict(operations).keys()
    for name, operation in operations:
        assert operation["x-codeSamples"][0]["label"] == "curl", name


def test_each_operation_of_apps_and_their_servers_has_an_example_in_each_language() -> None:
    for language in ("shell", "typescript", "python"):
        assert sorted(expected() - samples(language).keys()) == [], language


async def test_mypy_accepts_all_examples(tmp_path: Path) -> None:
    written = samples("python")
    assert len(written) > 60
    for number, source in enumerate(written.values()):
        (tmp_path / f"example_{number}.py").write_text(source + "\n")
    options = ["--strict", "--config-file", "", "--cache-dir", str(tmp_path / "cache"), str(tmp_path)]
    await _succeeds(sys.executable, "-m", "mypy", *options, MYPYPATH=str(CLIENT))


@pytest.mark.parametrize("operation", RUN)
async def test_the_example_in_python_runs(operation: str, server: Server, tmp_path: Path) -> None:
    source = samples("python")[operation].replace(URL, server.url)
    source = source.replace("the secret of one of the app's server_keys", SERVER_KEY)
    path = tmp_path / "example.py"
    path.write_text(source)
    await _succeeds(sys.executable, str(path), PYTHONPATH=str(CLIENT))


@pytest.mark.parametrize("operation", CURL)
async def test_the_example_for_the_shell_runs(operation: str, server: Server) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    source = samples("shell")[operation].replace(URL, server.url).replace("curl ", "curl -sS --fail-with-body ", 1)
    await _succeeds("sh", "-c", source, **await _variables(server))


async def test_the_example_of_a_recording_runs_for_the_shell(
    server: Server, sandbox: Running, tmp_path: Path
) -> None:
    await assessment_accounts(server, sandbox, name="local")
    (tmp_path / "hello.pcm").write_bytes(tone(1.2))
    source = samples("shell")["POST /bp/ai/audio/pronunciation"].replace(URL, server.url)
    source = source.replace("curl ", "curl -sS --fail-with-body ", 1)
    await _succeeds("sh", "-c", f"cd {tmp_path} && {source}", **await _variables(server))


@pytest.mark.parametrize("operation", ["POST /admin/api/session", "POST /dev/console/session"])
async def test_the_example_of_a_sign_in_is_no_call_of_another_site(operation: str, server: Server) -> None:
    source = samples("shell")[operation].replace(URL, server.url)
    assert "401" in await _succeeds("sh", "-c", source.replace("curl ", 'curl -sS -w "%{http_code}" ', 1))


def test_the_examples_need_no_other_programs() -> None:
    programs = {name for source in samples("shell").values() for name in re.findall(r"\$\((\w+)", source)}
    assert programs == {"base64", "date"}


async def _variables(server: Server) -> dict[str, str]:
    """Return what the welcome of `make run` sets in the shell."""
    async with server.http.post(f"{server.url}/bp/user/login", json={"device": {"id": "shell"}}) as response:
        user = (await response.json())["user"]
    token = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    return {
        "SESSION": user["session"]["session_token"],
        "USER_ID": user["uid"],
        "SERVER": token,
        "ADMIN": ADMIN_TOKEN,
    }


async def _succeeds(*command: str, **variables: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "env",
        *(f"{name}={value}" for name, value in variables.items()),
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()
