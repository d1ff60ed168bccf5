"""Plain HTTP requests to a sandbox."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientResponse, ClientSession

from streams.wire.codec import dumps, loads
from vendors.sandbox.server import Running


@dataclass(frozen=True)
class SandboxClient:
    """Sends requests to paths of the sandbox with a key for OpenAI."""

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
    """Return the status and the error of a refused request."""
    error = (await response.json())["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return response.status, error


async def events(response: ClientResponse) -> list[Any]:
    """Return the JSON of every event, and `[DONE]` unchanged."""
    assert response.status == 200, await response.text()
    assert response.content_type == "text/event-stream"
    *frames, rest = (await response.read()).split(b"\n\n")
    assert rest == b""
    assert all(frame.startswith(b"data: ") and b"\n" not in frame for frame in frames)
    return ["[DONE]" if frame == b"data: [DONE]" else loads(frame[6:]) for frame in frames]


CHAT = "/openai/v1/chat/completions"


def chat(text: str = "repeat 5 words", *, stream: bool = True) -> dict[str, object]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}], "stream": stream}
