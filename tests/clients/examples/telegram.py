"""Telegram's Bot API at a real socket, as far as the text bot uses it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, web

TOKEN = "4839574812:AAFD39kkdpWt3ywyRZergyOLMaJhac60qcK"


@dataclass
class Telegram:
    url: str = ""
    webhook: dict[str, str] = field(default_factory=dict)
    """The fields of the last `setWebhook`."""
    shown: dict[int, list[str]] = field(default_factory=dict)
    """The texts that each message has had."""
    refusals: int = 0
    """How many of the next calls are refused because there are too many."""

    async def post(self, update: dict[str, Any], **headers: str) -> int:
        """Post an update to the bot, as Telegram does, and return the status of its response."""
        own = {"X-Telegram-Bot-Api-Secret-Token": self.webhook["secret_token"]}
        async with ClientSession() as http, http.post(
            self.webhook["url"], json=update, headers={**own, **headers}
        ) as response:  # fmt: skip
            return response.status

    def last(self) -> str:
        """Return the newest message, as it looks now."""
        return self.shown[max(self.shown)][-1] if self.shown else ""

    async def call(self, request: web.Request) -> web.Response:
        assert request.match_info["token"] == TOKEN
        if self.refusals:
            self.refusals -= 1
            refusal = {"ok": False, "error_code": 429, "description": "Too Many Requests: retry after 0"}
            return web.json_response({**refusal, "parameters": {"retry_after": 0}}, status=429)
        result: Any = True
        match request.match_info["method"]:
            case "setWebhook":
                self.webhook = {name: str(value) for name, value in (await request.post()).items()}
            case "sendMessage":
                message_id = len(self.shown) + 1
                self.shown[message_id] = [(await request.json())["text"]]
                result = {"message_id": message_id}
            case "editMessageText":
                given = await request.json()
                assert given["text"] != self.shown[given["message_id"]][-1], "message is not modified"
                self.shown[given["message_id"]].append(given["text"])
        return web.json_response({"ok": True, "result": result})


@asynccontextmanager
async def running_telegram() -> AsyncIterator[Telegram]:
    telegram = Telegram()
    app = web.Application()
    app.router.add_post("/bot{token}/{method}", telegram.call)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    telegram.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield telegram
    finally:
        await runner.cleanup()
