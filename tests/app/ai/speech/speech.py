"""Audio that clients receive."""

import base64
from typing import Any

from tests.app.ai.conftest import Talk


async def fetch(talk: Talk, url: str) -> bytes:
    async with talk.server.http.get(url) as response:
        assert response.status == 200
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        return await response.read()


def audio_of(contents: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(content["audio"]) for content in contents)
