"""The reading of a stream from a position."""

from typing import Any

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.peers.sse_client import SeenEvent, named
from tests.running.servers import Server


def resume(talk: Talk, stream_id: str, after: int | str | None = None) -> Any:
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    return talk.get(f"/bp/ai/stream/{stream_id}", headers=headers)


async def limits(server: Server, **fields: Any) -> None:
    await server.services.configs.put("default", "limits", "default", fields, author="test", origin=COMMAND)


def text_of(seen: list[SeenEvent]) -> str:
    return "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk"))
