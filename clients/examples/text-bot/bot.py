"""A text bot for Telegram: an app server that answers each chat as one Parley user.

Telegram posts updates to `/telegram`. The answer is sent as a message that grows while it is generated.
"""

import asyncio
import hashlib
import hmac
import logging
import os
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import ClientError, ClientSession, web
from memory import Memory
from telegram import GrowingMessage, Refused, Telegram

from parley_client import ParleyError, ServerClient, ServerKey

_LOG = logging.getLogger("bot")
_HELLO = "Hello! Write to me, and I answer. /reset begins a new conversation."
_RESET = "What we have said is forgotten. What would you like to talk about?"
_TEXT_ONLY = "I can only read text."
_LATER = "I cannot answer at the moment. Please try again in a minute."
_FAILED = "I could not answer that. Send /reset to begin a new conversation."


class Bot:
    def __init__(self, parley: ServerClient, telegram: Telegram, memory: Memory, settings: dict[str, str]) -> None:
        self._parley = parley
        self._telegram = telegram
        self._memory = memory
        self._settings = settings
        self._chats: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, update: dict[str, Any]) -> None:
        """Answer an update, while further ones arrive."""
        task = asyncio.create_task(self._answer(update))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Stop answering. What is not answered yet is answered after the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(self, update: dict[str, Any]) -> None:
        message = update.get("message")
        if message is not None:
            async with self._chats[message["chat"]["id"]]:  # One turn of a chat after the other.
                try:
                    await self._reply(update["update_id"], message["chat"]["id"], message.get("text"))
                except (Refused, ClientError, TimeoutError) as error:
                    _LOG.warning("update %s was not answered: %s", update["update_id"], error)
        self._memory.answered(update["update_id"])

    async def _reply(self, update_id: int, chat_id: int, text: str | None) -> None:
        every_s = float(self._settings["EDIT_SECONDS"])
        message = GrowingMessage(self._telegram, chat_id, every_s=every_s)
        try:
            if text is None:
                await message.show(_TEXT_ONLY)
            elif text == "/start":
                await message.show(_HELLO)
            elif text == "/reset":
                self._memory.put_chat(chat_id, (await self._chat(chat_id))[0], None)
                await message.show(_RESET)
            else:
                await self._converse(update_id, chat_id, text, message)
        except ParleyError as error:
            _LOG.warning("update %s: %s (request %s)", update_id, error, error.request_id)
            await message.add(_LATER if error.retryable else _FAILED)

    async def _converse(self, update_id: int, chat_id: int, text: str, message: GrowingMessage) -> None:
        uid, conversation_id = await self._chat(chat_id)
        turn = self._parley.user(uid).converse(
            strategies=self._settings["STRATEGIES"].split(","),
            text=text,
            language_code=self._settings["LANGUAGE"],
            conversation_id=conversation_id,
            idempotency_key=f"telegram-{update_id}",  # After a restart, the answer is not made a second time.
        )
        async with turn:
            async for _ in turn:
                await message.grow(turn.text)
        await message.show(turn.text)
        self._memory.put_chat(chat_id, uid, turn.conversation_id)

    async def _chat(self, chat_id: int) -> tuple[str, str | None]:
        """Return the user of a chat, and its conversation. The first message of a chat makes its user."""
        if (known := self._memory.chat(chat_id)) is not None:
            return known
        # The id is secret, because whoever knows the id of a device can sign in as its user.
        secret = self._settings["SERVER_KEY"].encode()
        device = hmac.new(secret, f"telegram:{chat_id}".encode(), hashlib.sha256).hexdigest()
        uid = (await self._parley.sign_in("device", {"id": device}))["uid"]
        self._memory.put_chat(chat_id, uid, None)
        return uid, None


def application(settings: dict[str, str]) -> web.Application:
    app = web.Application()
    memory = Memory(settings["MEMORY"])
    key = ServerKey(settings["SERVER_KEY_ID"], "HS256", settings["SERVER_KEY"])

    async def running(_: web.Application) -> AsyncIterator[None]:
        async with ClientSession() as http, ServerClient(settings["URL"], settings["APP_ID"], key) as parley:
            telegram = Telegram(http, settings["TELEGRAM_URL"], settings["TELEGRAM_TOKEN"])
            app[_BOT] = Bot(parley, telegram, memory, settings)
            for update in memory.unanswered():
                app[_BOT].begin(update)
            yield
            await app[_BOT].stop()

    async def receive(request: web.Request) -> web.Response:
        given = request.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
        if not hmac.compare_digest(given.encode(), settings["TELEGRAM_SECRET"].encode()):
            raise web.HTTPForbidden
        update = await request.json()
        if memory.add(update):
            app[_BOT].begin(update)
        return web.Response()

    app.cleanup_ctx.append(running)
    app.router.add_post("/telegram", receive)
    return app


_BOT = web.AppKey("bot", Bot)
_REQUIRED = ("SERVER_KEY", "TELEGRAM_TOKEN", "TELEGRAM_SECRET")
"""Without a secret, anybody could post updates: a header that is missing is equal to a secret that is empty."""
_DEFAULTS = {
    "URL": "http://127.0.0.1:8080",
    "APP_ID": "default",
    "SERVER_KEY_ID": "development",
    "STRATEGIES": "scripted",
    "LANGUAGE": "en-US",
    "TELEGRAM_URL": "https://api.telegram.org",
    "EDIT_SECONDS": "1",
    "MEMORY": "bot.sqlite3",
    "BOT_PORT": "8090",
}

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    environment = {**_DEFAULTS, **os.environ}
    if missing := [name for name in _REQUIRED if not environment.get(name)]:
        raise SystemExit(f"These environment variables are not set: {', '.join(missing)}")
    web.run_app(application(environment), host="127.0.0.1", port=int(environment["BOT_PORT"]))
