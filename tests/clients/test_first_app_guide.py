"""The guide to a first app: its blocks run, in order, at a server of `make run` and at one in production mode."""

import asyncio
import os
import re
import sysconfig
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import playwright
import pytest

from app.commands.config_files import import_folder
from deploy.seeds import SEEDS
from tests.clients.cases import SIGN_KEY
from tests.clients.packages import PYTHON, TYPESCRIPT, clone_clients, without_network
from tests.clients.typescript.compiler import check_types
from tests.clients.typescript.conftest import built
from tests.code.source_files import ROOT
from tests.deploy.commands import command
from tests.environment import moved_clock
from tests.peers.curl import NEEDS_CURL, printed_by
from tests.running.local_engines import save_time
from tests.running.ports import free_ports
from tests.running.servers import ADMIN_TOKEN, Databases, new_server

__all__ = ["built"]

pytestmark = pytest.mark.timeout(400)
"""The engines of this machine load models, `make run` starts all processes, and the machine may be very busy."""

NODE = Path(playwright.__file__).parent / "driver/node"
"""It runs TypeScript, as the guide says of Node 22.18 and later. The Node of this machine may be older."""
GUIDE = (ROOT / "docs" / "guides" / "first-app.md").read_text()
RECORDINGS = ("question.mp3", "answer.mp3")
MADE = (*RECORDINGS, "session.json")
STEPS = ["app", "session", "question", "turn", "resume"]
SPOKEN = "Good morning. What is the capital of Japan?"
QUESTION = r"Good morning[.,] [Ww]hat is the capital of Japan\?"
"""What a recognizer hears: it cannot hear whether a sentence has ended."""


def blocks(language: str, page: str = GUIDE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def shown(language: str) -> list[str]:
    """Return the outputs that the guide shows, each below a block of the language."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    return [output for (before, _), (kind, output) in pairwise(found) if kind == "text" and before == language]


def as_shown(language: str, output: str) -> bool:
    """Return whether an output has what the guide shows, in this order, with `…` for what differs."""
    lines = [re.escape(part).replace("…", "[^\n]*") for part in shown(language)]
    recognized = re.sub(QUESTION, SPOKEN, output)
    return re.search("^" + "(.*\n)?".join(lines), recognized, re.MULTILINE | re.DOTALL) is not None


def curl_blocks() -> list[str]:
    return [block for block in blocks("sh") if "$CLONE" not in block]


def install_block(client: str, page: str = GUIDE) -> str:
    """Return the commands that install a client from a clone."""
    [block] = [block for block in blocks("sh", page) if f'"$CLONE/{client}"' in block]
    return block


async def project(client: str, language: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which a block has installed a client, with the files that the other blocks name."""
    folder, cache = tmp_path_factory.mktemp(language), tmp_path_factory.mktemp("cache")
    clone = clone_clients(tmp_path_factory.mktemp("clone"))
    await printed("bash", "-euc", install_block(client), folder=folder, CLONE=str(clone), **without_network(cache))
    for code in blocks(language):
        _, name = code.partition("\n")[0].split()
        (folder / name).write_text(code)
    return folder


@pytest.fixture(scope="module")
async def python_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return await project("clients/python", "python", tmp_path_factory)


@pytest.fixture(scope="module")
async def typescript_project(built: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = await project("clients/typescript", "ts", tmp_path_factory)
    check_types(folder)
    return folder


async def printed(*commands: str, folder: Path, **env: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *commands,
        cwd=folder,
        env={"PATH": os.defpath, **moved_clock(), **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert (process.returncode, errors.decode()) == (0, ""), output.decode()
    return output.decode()


@asynccontextmanager
async def development(_: Databases, __: str, folder: Path) -> AsyncIterator[dict[str, str]]:
    port = str(free_ports(1)[0])
    async with command("deploy.local", PORT=port, PARLEY_DATA_DIR=str(folder)) as local:
        await local.until("Press Ctrl-C to stop.")
        [line] = [line for line in local.lines if line.startswith("export APP_ID=")]
        app, key = (part.partition("=")[2] for part in line.split()[1:])
        operator_token = (folder / "admin-token").read_text().strip()
        await save_time(f"http://127.0.0.1:{port}", app_id=app, operator_token=operator_token)
        yield {"PORT": port, "APP_ID": app, "APP_SIGN_KEY": key}


@asynccontextmanager
async def production(databases: Databases, engines: str, folder: Path) -> AsyncIterator[dict[str, str]]:
    """A server with the configs of a new deployment, as docs/operating/install.md makes them."""
    async with new_server(databases, folder, seeded=False, env="production", local_url=engines) as server:
        for name in ("production", "engines"):
            env = {"APP_SIGN_KEY": SIGN_KEY, "VENDOR_KEY": "sk-unused"}
            await import_folder(server.services.configs, SEEDS / name, author="import", env=env)
        await save_time(server.url, app_id="default", operator_token=ADMIN_TOKEN)
        yield {"URL": server.url, "APP_ID": "default", "APP_SIGN_KEY": SIGN_KEY}


@pytest.fixture(scope="module", params=[development, production], ids=lambda server: server.__name__)
async def testbed(
    request: pytest.FixtureRequest,
    databases: Databases,
    local_vendors: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[dict[str, str]]:
    """The variables of a reader of the guide."""
    start: Callable = request.param
    async with start(databases, local_vendors, tmp_path_factory.mktemp("data")) as variables:
        yield variables


def test_each_step_has_a_block_of_each_language() -> None:
    assert len(curl_blocks()) == 1 + len(STEPS)
    for language, ending in (("ts", "ts"), ("python", "py")):
        assert [code.partition("\n")[0].split()[1] for code in blocks(language)] == [
            f"{step}.{ending}" for step in STEPS
        ]
        assert len(shown(language)) == 3, "what a session, a turn and a resumed turn print"
    assert len(shown("sh")) == len(STEPS)
    assert "sleep" not in GUIDE


def test_the_readmes_of_the_clients_install_them_as_the_guide_does() -> None:
    for client in (PYTHON, TYPESCRIPT):
        name, readme = f"clients/{client.name}", (client / "README.md").read_text()
        assert set(install_block(name, readme).splitlines()) <= set(install_block(name).splitlines())
        assert readme.count(f"CLONE/{name}") == 1, "it says how to install it twice"


@NEEDS_CURL
async def test_the_blocks_of_curl_run_unchanged(testbed: dict[str, str], tmp_path: Path) -> None:
    output = await printed_by("".join(curl_blocks()), tmp_path, **testbed)
    assert as_shown("sh", output), output
    assert re.search(r'^event: assistant_output_content_segment\ndata: .*"text":"\w', output, re.MULTILINE)
    made_audio(tmp_path)


async def test_the_blocks_of_python_run_unchanged(testbed: dict[str, str], python_project: Path) -> None:
    variables = {**reader(testbed), "PYTHONPATH": sysconfig.get_path("purelib")}
    runs = [(str(python_project / ".venv/bin/python"), "-W", "error", f"{step}.py") for step in STEPS[1:]]
    check("python", await in_order(runs, python_project, variables), python_project)


async def test_the_blocks_of_typescript_run_unchanged(testbed: dict[str, str], typescript_project: Path) -> None:
    runs = [(str(NODE), f"{step}.ts") for step in STEPS[1:]]
    check("ts", await in_order(runs, typescript_project, reader(testbed)), typescript_project)


def reader(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables after the first block, which sets the URL."""
    return {"URL": f"http://127.0.0.1:{variables.get('PORT')}", **variables}


async def in_order(runs: list[tuple[str, ...]], folder: Path, env: dict[str, str]) -> list[str]:
    """Run the files in a folder that has nothing of runs before."""
    for name in MADE:
        (folder / name).unlink(missing_ok=True)
    return [await printed(*run, folder=folder, **env) for run in runs]


def check(language: str, outputs: list[str], folder: Path) -> None:
    assert as_shown(language, "".join(outputs)), outputs
    session, question, turn, resumed = outputs
    assert re.fullmatch(r"user [0-9a-f]{32}\n", session)
    assert question == ""
    assert re.fullmatch(rf"You: {QUESTION}\n\w.*\nconversation [0-9a-f]{{32}}\n", turn, re.DOTALL)
    assert re.fullmatch(r"the same answer: \w+ \w.*\n", resumed, re.DOTALL)
    made_audio(folder)


def made_audio(folder: Path) -> None:
    for name in RECORDINGS:
        audio = (folder / name).read_bytes()
        assert audio[:3] == b"ID3" or audio[0] == 0xFF, name
        assert len(audio) > 1000
