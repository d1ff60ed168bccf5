"""The part of Telegram's Bot API that the bot needs: https://core.telegram.org/bots/api."""

import asyncio
from typing import Any

from aiohttp import ClientSession

_CHARS = 2_000
"""Telegram allows 4,096 UTF-16 code units in a message, of which a character is one or two."""


class Refused(Exception):
    """Telegram has refused a call."""


class Telegram:
    def __init__(self, http: ClientSession, url: str, token: str) -> None:
        self._http = http
        self._methods = f"{url}/bot{token}"

    async def call(self, method: str, **fields: Any) -> Any:
        """Return the result of a call. Waits if Telegram asks for it."""
        while True:
            async with self._http.post(f"{self._methods}/{method}", json=fields) as response:
                reply = await response.json(content_type=None)
            if reply["ok"]:
                return reply["result"]
            if reply["error_code"] != 429:
                raise Refused(reply["description"])
            await asyncio.sleep(reply["parameters"]["retry_after"])


class GrowingMessage:
    """A message in a chat that is edited while its text grows. Long texts go on in further messages."""

    def __init__(self, telegram: Telegram, chat_id: int, *, every_s: float) -> None:
        self._telegram = telegram
        self._chat_id = chat_id
        self._every_s = every_s
        self._next = 0.0
        self._shown: list[tuple[int, str]] = []
        """The id and the text of each message."""

    async def grow(self, text: str) -> None:
        """Show a text that is not complete yet, unless the last edit was a moment ago."""
        now = asyncio.get_running_loop().time()
        if now >= self._next and text.strip():
            await self.show(text)
            self._next = asyncio.get_running_loop().time() + self._every_s

    async def show(self, text: str) -> None:
        for number, begin in enumerate(range(0, len(text), _CHARS)):
            part = text[begin : begin + _CHARS]
            if number == len(self._shown):
                sent = await self._telegram.call("sendMessage", chat_id=self._chat_id, text=part)
                self._shown.append((sent["message_id"], part))
                continue
            message_id, shown = self._shown[number]
            if part != shown:
                to = {"chat_id": self._chat_id, "message_id": message_id}
                await self._telegram.call("editMessageText", **to, text=part)
                self._shown[number] = (message_id, part)

    async def add(self, words: str) -> None:
        """Show further words in a paragraph of their own."""
        text = "".join(part for _, part in self._shown)
        await self.show(f"{text}\n\n{words}" if text else words)
