"""The page as a person finds it: by roles and names."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from playwright.async_api import Locator, Page, Request, Response, expect

from tests.servers import Server
from tests.sse_client import SeenEvent, all_events

_TOKEN = "x-service-session-token"
_CONVERSATION = "x-service-conversation-id"
_STREAM = "x-service-stream-id"
_SOMETHING_MS = 500


@dataclass
class Talking:
    page: Page
    server: Server
    token: str = ""
    """Of the session that the page uses."""
    conversation_id: str = ""
    streams: list[str] = field(default_factory=list)
    """The answers that the page asked for, in order."""

    def watch(self) -> None:
        self.page.on("request", self._asked)
        self.page.on("response", self._answered)

    def _asked(self, request: Request) -> None:
        self.token = request.headers.get(_TOKEN) or self.token

    def _answered(self, response: Response) -> None:
        self.conversation_id = response.headers.get(_CONVERSATION) or self.conversation_id
        stream_id = response.headers.get(_STREAM)
        if stream_id and stream_id not in self.streams:
            self.streams.append(stream_id)

    async def open(self, strategy: str | None = None) -> None:
        await self.page.goto(self.server.url + "/")
        await self.ready()
        if strategy:
            await self.strategy.select_option(strategy)

    async def ready(self) -> None:
        await expect(self.page.locator("html[data-ready]")).to_be_attached()

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def tab(self, name: str) -> Locator:
        return self.page.get_by_role("tab", name=name, exact=True)

    @property
    def strategy(self) -> Locator:
        return self.page.get_by_role("combobox", name="Strategy", exact=True)

    @property
    def message(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def hold(self) -> Locator:
        return self.button("Hold to talk")

    @property
    def said(self) -> Locator:
        """What the user said last."""
        return self._articles("user").last

    @property
    def answer(self) -> Locator:
        """The last answer."""
        return self._articles("assistant").last

    def _articles(self, role: str) -> Locator:
        log = self.page.get_by_role("log", name="Conversation")
        return log.locator(f'article[data-role="{role}"]')

    @property
    def status(self) -> Locator:
        return self.page.get_by_role("status")

    @property
    def alert(self) -> Locator:
        return self.page.get_by_role("alert")

    async def say(self, text: str) -> None:
        async with self._a_turn_more():
            await self.message.fill(text)
            await self.button("Send").click()

    @asynccontextmanager
    async def _a_turn_more(self) -> AsyncIterator[None]:
        answers = self._articles("assistant")
        before = await answers.count()
        yield
        await expect(answers).to_have_count(before + 1)

    async def pick(self, box: str, choice: str) -> None:
        await self.page.get_by_role("combobox", name=box, exact=True).select_option(choice)

    async def say_aloud(self) -> None:
        """Hold the button until the microphone has given all that it has."""
        async with self._a_turn_more():
            await self.press(self.hold)
            await self.all_is_said()
            await self.page.mouse.up()

    async def all_is_said(self) -> None:
        """Wait until the microphone has given all that it has."""
        await self.page.evaluate("() => window.seen.said")

    async def something_is_said(self) -> None:
        """Wait until the page listens and was given some sound."""
        await expect(self.status).to_contain_text("Listening")
        await self.page.evaluate("(ms) => window.seen.speech(ms)", _SOMETHING_MS)

    async def was_heard(self) -> None:
        """Wait until ears that tell how many seconds of sound they got have got some."""
        await expect(self.said.locator("p")).to_have_text(re.compile(r"^[0-5]\.\d seconds$"))

    async def press(self, button: Locator) -> None:
        await button.scroll_into_view_if_needed()
        await button.hover()
        await self.page.mouse.down()

    async def answered(self, state: str = "complete") -> list[str]:
        """The paragraphs of the answer, once it is in that state."""
        await expect(self.answer).to_have_attribute("data-state", state)
        return await self.paragraphs()

    async def paragraphs(self) -> list[str]:
        return await self.answer.locator("p").all_inner_texts()

    @property
    def inside(self) -> Locator:
        return self.page.locator("details", has=self.page.locator("summary", has_text="Look inside"))

    async def look_inside(self) -> Locator:
        if await self.inside.get_attribute("open") is None:
            await self.inside.locator("summary").first.click()
        return self.inside

    async def verdict(self, text: str = "Digest matches") -> None:
        """What the page found the answer's digest to be."""
        await self.look_inside()
        await expect(self.inside.get_by_text(text, exact=True)).to_be_visible()

    async def events(self) -> list[SeenEvent]:
        """All that the server sent for the last answer."""
        url = f"{self.server.url}/bp/ai/stream/{self.streams[-1]}"
        async with self.server.http.get(url, headers={_TOKEN: self.token}) as response:
            return await all_events(response)

    async def history(self) -> list[dict[str, Any]]:
        """The messages of the conversation as the server keeps them, the oldest first."""
        async with self.server.http.get(
            f"{self.server.url}/bp/ai/conversation/query",
            params={"conversation_id": self.conversation_id},
            headers={_TOKEN: self.token},
        ) as response:
            answer = await response.json()
            assert response.status == 200, answer
        records = sorted(answer["data"]["conversation_records"], key=itemgetter("record_id"))
        return [message for record in records for message in record["content"]]

    async def kept(self, role: str) -> list[str]:
        """The paragraphs of the last message of `role` in the history."""
        message = [message for message in await self.history() if message["role"] == role][-1]
        return [item["text"] for item in message["content"] if item["type"] == "text"]


def plain(text: str) -> str:
    """`text` in small letters, without stops and the like: what is left to compare of speech."""
    return " ".join(re.findall(r"[a-z']+", text.lower()))
