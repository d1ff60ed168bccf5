"""A server whose strategies call a vendor that the test controls."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import ClientResponse

from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.peers.sse_client import SeenEvent, all_events
from tests.peers.vendor import Vendor, running_vendor
from tests.running.another_server import another_server
from tests.running.servers import Server
from vendors.sandbox.server import Running, listening


@pytest.fixture
async def vendor() -> AsyncIterator[Vendor]:
    async with running_vendor() as running:
        yield running


@pytest.fixture
async def sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


@pytest.fixture
async def other(server: Server) -> AsyncIterator[Server]:
    """Another server on the stores of `server`."""
    async with another_server(server.services.settings) as running:
        yield running


@dataclass
class Talk:
    """A signed-in user who has a conversation."""

    server: Server
    uid: str
    token: str
    conversation_id: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def post(self, path: str, **options: Any):
        headers = {"X-Service-Session-Token": self.token, **self.headers, **options.pop("headers", {})}
        return self.server.http.post(self.server.url + path, headers=headers, **options)

    def get(self, path: str, **options: Any):
        headers = {"X-Service-Session-Token": self.token, **options.pop("headers", {})}
        return self.server.http.get(self.server.url + path, headers=headers, **options)

    def params(self, *strategies: str, **fields: Any) -> bytes:
        return dumps(
            {
                "strategies": list(strategies),
                "language_code": "en-US",
                "target_language_code": "en-US",
                "type": "text",
                "conversation_id": self.conversation_id,
                **fields,
            }
        )

    def delete(self, path: str, **options: Any):
        headers = {"X-Service-Session-Token": self.token, **options.pop("headers", {})}
        return self.server.http.delete(self.server.url + path, headers=headers, **options)

    def say(self, text: str, *strategies: str, **fields: Any):
        return self.post("/bp/ai/conversation", data=self.params(*strategies, **fields) + text.encode())

    async def turn(self, text: str, *strategies: str, **fields: Any) -> list[SeenEvent]:
        async with self.say(text, *strategies, **fields) as response:
            self.remember(response)
            return await all_events(response)

    def remember(self, response: ClientResponse) -> None:
        self.conversation_id = response.headers.get("X-Service-Conversation-Id", "")

    async def history(self, **query: Any) -> dict[str, Any]:
        params = {"conversation_id": self.conversation_id, **query}
        async with self.get("/bp/ai/conversation/query", params=params) as response:
            answer = await response.json()
            assert response.status == 200, answer
            return answer["data"]


@pytest.fixture
async def talk(server: Server) -> Talk:
    uid, token = await server.login()
    return Talk(server, uid, token)


@pytest.fixture
async def strategy(server: Server, vendor: Vendor) -> Callable[..., Awaitable[None]]:
    """Creates a conversation strategy: `await strategy("name", "say:Hello", waits={...})`."""
    configs = server.services.configs
    account = {"platform": "vendor_b_llm", "base_url": vendor.url, "api_key": "sk-test"}
    await configs.put("default", "vendor_accounts", "test", account, author="test", origin=COMMAND)

    async def make(name: str, model: str, **fields: Any) -> None:
        top = {
            key: fields.pop(key)
            for key in ("speech", "recognition", "paragraph_delimiter", "on_break", "on_abandon", "durable")
            if key in fields
        }
        value = {"chat": {"account": "test", "model": model} | fields, **top}
        await configs.put("default", "conversation", name, value, author="test", origin=COMMAND)

    return make
