"""Assessment requests to vendor A in the sandbox, and their results."""

import asyncio
import base64
import json  # noqa: TID251 - an independent client
from typing import Any

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import account
from tests.running.servers import Server
from vendors.sandbox.bill import BilledCall
from vendors.sandbox.server import Running

PATH = "/bp/ai/audio/pronunciation"
REFERENCE = "Good morning, my friend."
ATTEMPTS = "select strategy, stage, outcome, input_unit, price from attempts order by created_at, number"
HANGS = {"fault": "hang_before_output", "position": "before"}


def params(strategy: str = "one", **data: Any) -> bytes:
    return json.dumps({"strategy": strategy, "data": {"reference_text": REFERENCE, **data}}).encode()


def coded(audio: bytes) -> bytes:
    return base64.b64encode(audio)


async def assessment_accounts(
    server: Server, sandbox: Running, *keys: str, name: str = "one", **fields: Any
) -> None:
    """Create a strategy with one account for each key: `first`, `second`, `third`."""
    top = {field: fields.pop(field) for field in ("languages",) if field in fields}
    names = ("first", "second", "third")[: len(keys) or 1]
    for account_name, key in zip(names, keys or ["sandbox"], strict=True):
        await account(server, sandbox, account_name, "vendor_a_audio", key)
    value = {"accounts": [{"account": account_name, **fields} for account_name in names], **top}
    await server.services.configs.put("default", "pronunciation", name, value, author="test", origin=COMMAND)


async def limits(server: Server, **values: Any) -> None:
    await server.services.configs.put("default", "limits", "default", values, author="test", origin=COMMAND)


async def assessed(talk: Talk, body: Any, **options: Any) -> dict[str, Any]:
    async with talk.post(PATH, data=body, **options) as response:
        answer = await response.json()
        assert response.status == 200, answer
        assert response.content_type == "application/json"
        assert response.headers["X-Service-Stream-Id"]
    return answer


async def refused(talk: Talk, body: Any) -> tuple[int, str]:
    """Return the status and the message of a response that must have the error envelope."""
    async with talk.post(PATH, data=body) as response:
        answer = await response.json()
        assert answer.keys() == {"error"}
        error = answer["error"]
        assert error["message"].startswith(f"{error['error_type']}: ")
        return response.status, error["message"]


async def called(sandbox: Running) -> BilledCall:
    return await asyncio.wait_for(sandbox.bill.wait(lambda _: True), 5)


async def closed(sandbox: Running) -> BilledCall:
    """Return the first call that has ended, which must happen within a second."""
    return await asyncio.wait_for(sandbox.bill.wait(), 1)


def calls(sandbox: Running) -> list[BilledCall]:
    return list(sandbox.bill.since())


async def attempts(server: Server) -> list[tuple[Any, ...]]:
    async with server.services.database.connection() as conn:
        return [tuple(row) for row in await conn.fetch(ATTEMPTS)]
