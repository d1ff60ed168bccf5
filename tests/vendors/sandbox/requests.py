"""Plain requests to a sandbox, read by the letter."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientResponse, ClientSession

from streams.wire.codec import dumps, loads
from vendors.sandbox.server import Running


@dataclass(frozen=True)
class SandboxClient:
    """`post` and `get` take a path behind the sandbox's address, and a key of OpenAI."""

    running: Running
    http: ClientSession

    def post(self, path: str, body: Any, key: str = "sandbox"):
        raw = body if isinstance(body, bytes) else dumps(body)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        return self.http.post(f"{self.running.url}{path}", data=raw, headers=headers)

    def get(self, path: str, key: str = "sandbox"):
        return self.http.get(f"{self.running.url}{path}", headers={"Authorization": f"Bearer {key}"})


@asynccontextmanager
async def sandbox_client(running: Running) -> AsyncIterator[SandboxClient]:
    async with ClientSession() as http:
        yield SandboxClient(running, http)


async def refusal(response: ClientResponse) -> tuple[int, dict[str, Any]]:
    """Status and error of a refused request."""
    error = (await response.json())["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return response.status, error


async def events(response: ClientResponse) -> list[Any]:
    """The JSON of every event; `[DONE]` as it is."""
    assert response.status == 200, await response.text()
    assert response.content_type == "text/event-stream"
    *frames, rest = (await response.read()).split(b"\n\n")
    assert rest == b""
    assert all(frame.startswith(b"data: ") and b"\n" not in frame for frame in frames)
    return ["[DONE]" if frame == b"data: [DONE]" else loads(frame[6:]) for frame in frames]
