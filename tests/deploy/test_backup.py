"""The commands of backup-and-restore.md restore a deployment in which every conversation and file is found."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import ClientSession

from app.settings import Settings
from deploy.stores import Stores
from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.deploy.commands import command
from tests.deploy.documented_commands import (
    ROOT,
    follow,
    placeholders_of,
    shell_in_clone,
    steps_of,
)
from tests.deploy.serving import server_env
from tests.peers.sse_client import events
from tests.running.ports import free_ports
from tests.running.servers import ADMIN_TOKEN, Databases, Server, new_server
from vendors.sandbox.server import Running, listening

PAGE = (ROOT / "docs" / "operating" / "backup-and-restore.md").read_text()
TOKEN = "X-Service-Session-Token"
PARAMS = {"strategies": ["spoken"], "type": "text", "language_code": "en", "target_language_code": "en"}
_LINK = re.compile(r"http://[^/\"]+(/[^?\"]+)\?([^\"]+)")
ADMIN = {"Authorization": f"Bearer {ADMIN_TOKEN}"}


@dataclass(frozen=True)
class Person:
    """A user, and what the deployment shows of them."""

    uid: str
    token: str
    conversation_id: str


@pytest.fixture
async def sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


@pytest.fixture
async def server(databases: Databases, sandbox: Running, tmp_path: Path) -> AsyncIterator[Server]:
    """A deployment whose strategy speaks, so that conversations have files."""
    async with new_server(databases, tmp_path / "data", sandbox_url=sandbox.url) as running:
        account = {"base_url": f"{sandbox.url}/openai/v1", "api_key": "sk-of-the-backup"}
        speech = {"account": "audio", "model": "gpt-4o-mini-tts", "voice": "alloy"}
        spoken = {"chat": {"account": "llm", "model": "gpt-4o-mini"}, "speech": "voice"}
        for kind, name, value in (
            ("vendor_accounts", "llm", {**account, "platform": "openai"}),
            ("vendor_accounts", "audio", {**account, "platform": "openai_audio"}),
            ("speech", "voice", speech),
            ("conversation", "spoken", spoken),
        ):
            await running.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)
        yield running


async def talk(http: ClientSession, url: str, token: str, conversation_id: str = "") -> str:
    """Say something, and return the id of the conversation once the answer is complete."""
    given = {**PARAMS, **({"conversation_id": conversation_id} if conversation_id else {})}
    body = dumps(given) + b"Tell me a story."
    async with http.post(f"{url}/bp/ai/conversation", data=body, headers={TOKEN: token}) as answer:
        seen = [event async for event in events(answer)]
    assert seen[-1].name == "end", seen[-1]
    return str(seen[-1].content["conversation_id"])


async def read(http: ClientSession, url: str, path: str, headers: dict[str, str]) -> Any:
    async with http.get(url + path, headers=headers) as answer:
        assert answer.status == 200, (path, await answer.text())
        return await answer.json()


async def what_is_shown(http: ClientSession, url: str, person: Person) -> dict[str, Any]:
    """Return what a deployment shows of a user: history, files, assets; and its configs."""
    session = {TOKEN: person.token}
    history = await read(http, url, f"/bp/ai/conversation/query?conversation_id={person.conversation_id}", session)
    text = dumps(history).decode()
    files = {}
    for name, query in _LINK.findall(text):
        async with http.get(f"{url}{name}?{query}") as answer:
            assert answer.status == 200, name
            files[name] = await answer.read()
    return {
        "records": _LINK.sub(r"\1", text),
        "files": files,
        "user": await read(http, url, "/bp/user/me", session),
        "assets": await read(http, url, f"/admin/api/users/default/{person.uid}/assets", ADMIN),
        "configs": await read(http, url, "/admin/api/configs?size=200", ADMIN),
    }


async def test_the_documented_commands_restore_every_conversation_asset_and_file(
    server: Server, stores: Stores, empty_database: str, tmp_path: Path
) -> None:
    people = [await new_person(server) for _ in range(2)]
    before = [await what_is_shown(server.http, server.url, person) for person in people]
    assert all(len(user["files"]) >= 2 and user["assets"]["assets"] for user in before)
    (data := tmp_path / "restored").mkdir()
    (port,) = map(str, free_ports(1))
    values = {"<new-database-url>": empty_database, "<new-data-dir>": str(data), "<port>": port}
    assert placeholders_of(PAGE) == values.keys()
    await run_the_page(server, values, tmp_path)
    settings = replace(
        server.services.settings,
        database_url=empty_database,
        data_dir=data,
        port=int(port),
        public_url=f"http://127.0.0.1:{port}",
        redis_prefix=f"restored-{uuid4().hex}:",
    )
    async with command(
        "app", "serve", **server_env(settings, PARLEY_PROCESSES="1", **sandbox_of(settings))
    ) as restored:
        await restored.event("server.listening")
        after = [await what_is_shown(server.http, settings.public_url, person) for person in people]
        assert after == before
        again = await talk(server.http, settings.public_url, people[0].token, people[0].conversation_id)
        assert again == people[0].conversation_id


def sandbox_of(settings: Settings) -> dict[str, str]:
    return {"PARLEY_SANDBOX_URL": settings.sandbox_url or ""}


async def new_person(server: Server) -> Person:
    uid, token = await server.login()
    conversation_id = await talk(server.http, server.url, token)
    await talk(server.http, server.url, token, conversation_id)
    headers = {**ADMIN, "X-Parley-Reason": "a gift", "Idempotency-Key": uid}
    path = f"{server.url}/admin/api/users/default/{uid}/assets"
    async with server.http.post(path, json={"product": "coins_100"}, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
    return Person(uid, token, conversation_id)


async def run_the_page(server: Server, values: dict[str, str], tmp_path: Path) -> None:
    """Run all blocks of the page in the shell of an operator whose deployment is `server`."""
    variables = {**server_env(server.services.settings), **sandbox_of(server.services.settings)}
    async with shell_in_clone(tmp_path) as shell:
        env = "".join(f"{name}='{text}'\n" for name, text in variables.items())
        (tmp_path / "parley" / "parley.env").write_text(env)
        await shell.run("set -e; python3 -m venv .venv; set -a; . ./parley.env; set +a")
        for step in steps_of(PAGE):
            await follow(step, shell, values)
