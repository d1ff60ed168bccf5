"""Users of server processes, each with a stream."""

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import ClientError, ClientResponse, ClientSession

from streams.wire.codec import dumps
from tests.peers.sse_client import SeenEvent, events, named


@dataclass
class Caller:
    """A user with one stream."""

    http: ClientSession
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    seen: list[SeenEvent] = field(default_factory=list)
    stream_id: str = ""
    conversation_id: str = ""
    cut: bool = False

    async def login(self) -> None:
        async with self.http.post(f"{self.url}/bp/user/login", json={"device": {"id": uuid4().hex}}) as answer:
            token = (await answer.json())["user"]["session"]["session_token"]
        self.headers = {"X-Service-Session-Token": token}

    async def say(self, text: str, name: str) -> ClientResponse:
        params = {"strategies": [name], "type": "text", "language_code": "en", "target_language_code": "en"}
        path = f"{self.url}/bp/ai/conversation"
        response = await self.http.post(path, data=dumps(params) + text.encode(), headers=self.headers)
        self.stream_id = response.headers.get("X-Service-Stream-Id", "")
        self.conversation_id = response.headers.get("X-Service-Conversation-Id", "")
        return response

    async def read(self, response: ClientResponse) -> None:
        try:
            async with response:
                async for event in events(response):
                    self.seen.append(event)
        except (ClientError, ConnectionError):
            self.cut = True

    def resume(self) -> Any:
        after = str(max((event.id for event in self.seen if event.id), default=0))  # Pings have no id.
        path = f"{self.url}/bp/ai/stream/{self.stream_id}"
        return self.http.get(path, headers={**self.headers, "Last-Event-ID": after})

    @property
    def text(self) -> str:
        """The text of the answer so far."""
        return "".join(chunk["text"] for chunk in named(self.seen, "assistant_output_chunk"))


async def callers(http: ClientSession, url: str, count: int) -> list[Caller]:
    """Log in `count` callers, each with a new device."""
    made = [Caller(http, url) for _ in range(count)]
    await asyncio.gather(*(caller.login() for caller in made))
    return made
