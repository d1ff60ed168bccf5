"""Strategies that recognize speech with a vendor of the sandbox."""

import base64
import io
from typing import Any

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import account, chat
from tests.peers.sse_client import all_events
from tests.running.servers import Server
from vendors.sandbox.bill import BilledCall
from vendors.sandbox.server import Running


def coded(audio: bytes) -> bytes:
    return base64.b64encode(audio)


def heard(entry: BilledCall) -> bool:
    return entry.stage == "stt"


async def ears(
    server: Server,
    sandbox: Running,
    name: str,
    platform: str = "vendor_a_audio",
    key: str = "sandbox",
    **fields: Any,
) -> None:
    """Create a conversation strategy with recognition by `platform`."""
    await account(server, sandbox, f"{name}-ears", platform, key)
    value = {"account": f"{name}-ears", **fields}
    await server.services.configs.put("default", "recognition", name, value, author="test", origin=COMMAND)
    await chat(server, sandbox, name, "vendor_b_llm", recognition=name)


async def said(talk: Talk, audio: bytes, *names: str) -> list[Any]:
    """Send audio to a conversation with these strategies, and return its events."""
    body = talk.params(*names, type="audio") + coded(audio)
    async with talk.post("/bp/ai/conversation", data=io.BytesIO(body)) as response:
        return await all_events(response)
