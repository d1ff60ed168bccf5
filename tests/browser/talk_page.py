"""The talk page as tests use it: controls are found by their roles and names."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from playwright.async_api import Locator, Page, Request, Response, expect

from tests.peers.sse_client import SeenEvent, all_events
from tests.running.servers import Server

_TOKEN = "x-service-session-token"
_CONVERSATION = "x-service-conversation-id"
_STREAM = "x-service-stream-id"
_SOME_SPEECH_MS = 500
_PLAYER_IS = """async (state) => {
    while (window.parley.player.state !== state) await new Promise(requestAnimationFrame);
}"""


@dataclass
class TalkPage:
    page: Page
    server: Server
    token: str = ""
    """The session token that the page uses."""
    conversation_id: str = ""
    streams: list[str] = field(default_factory=list)
    """The ids of the streams that the page requested, in order."""

    def watch(self) -> None:
        self.page.on("request", self._on_request)
        self.page.on("response", self._on_response)

    def _on_request(self, request: Request) -> None:
        self.token = request.headers.get(_TOKEN) or self.token

    def _on_response(self, response: Response) -> None:
        self.conversation_id = response.headers.get(_CONVERSATION) or self.conversation_id
        stream_id = response.headers.get(_STREAM)
        if stream_id and stream_id not in self.streams:
            self.streams.append(stream_id)

    async def open(self, strategy: str | None = None) -> None:
        await self.page.goto(self.server.url + "/")
        await self.ready()
        if strategy:
            await self.choose(strategy)

    async def choose(self, strategy: str) -> None:
        async with self.settings():
            await self.strategy.select_option(strategy)

    async def interrupt(self) -> None:
        await self.button("Interrupt").click()

    async def reload_during_answer(self) -> None:
        """Reload the page once it has stored the id of the running stream, which it needs to resume the answer."""
        await self.page.wait_for_function("Object.values(sessionStorage).some((value) => JSON.parse(value).stream)")
        await self.page.reload()
        await self.ready()

    async def ready(self) -> None:
        await expect(self.page.locator("html[data-ready]")).to_be_attached()

    @asynccontextmanager
    async def settings(self) -> AsyncIterator[None]:
        """Open the settings, and close them in the end, after which the page takes keys again."""
        await self.button("Settings").click()
        yield
        await self.button("Close the settings").click()
        await expect(self.page.get_by_role("dialog")).to_have_count(0)

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
    def hands_free(self) -> Locator:
        return self.button("Hands-free")

    @property
    def record(self) -> Locator:
        return self.button("Hold to record")

    @property
    def user_message(self) -> Locator:
        """The last message of the user."""
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
        async with self.one_more_turn():
            await self.message.fill(text)
            await self.button("Send").click()

    @asynccontextmanager
    async def one_more_turn(self) -> AsyncIterator[None]:
        answers = self._articles("assistant")
        before = await answers.count()
        yield
        await expect(answers).to_have_count(before + 1)

    async def pick(self, box: str, choice: str) -> None:
        async with self.settings():
            await self.page.get_by_role("combobox", name=box, exact=True).select_option(choice)

    async def say_aloud(self) -> None:
        """Hold the button until the recording of the microphone has ended."""
        async with self.one_more_turn():
            await self.press(self.hold)
            await self.speech_ended()
            await self.page.mouse.up()

    async def speech_ended(self) -> None:
        """Wait until the recording of the microphone has ended."""
        await self.page.evaluate("() => window.seen.speechEnded")

    async def some_speech_recorded(self) -> None:
        """Wait until the page has recorded some speech."""
        await expect(self.status).to_contain_text("Listening")
        await self.page.evaluate("(ms) => window.seen.speech(ms)", _SOME_SPEECH_MS)

    async def duration_recognized(self) -> None:
        """Wait until the transcript of `duration_recognition` is shown."""
        await expect(self.user_message.locator("p")).to_have_text(re.compile(r"^[0-5]\.\d seconds$"))

    async def playing(self) -> None:
        """Wait until audio of the answer is played. A short answer would be over before `expect` looks again."""
        await self.page.evaluate(_PLAYER_IS, "playing")

    async def played(self) -> float:
        """Wait until the answer has been played. Return how many milliseconds of audio that were."""
        await self.page.evaluate(_PLAYER_IS, "idle")
        return await self.page.evaluate("() => window.parley.player.heardMs")

    async def press(self, button: Locator) -> None:
        await button.scroll_into_view_if_needed()
        await button.hover()
        await self.page.mouse.down()

    async def answered(self, state: str = "complete") -> list[str]:
        """Wait until the answer has this state. Return its paragraphs."""
        await expect(self.answer).to_have_attribute("data-state", state)
        return await self.paragraphs()

    async def paragraphs(self) -> list[str]:
        return await self.answer.locator("p").all_inner_texts()

    @property
    def details(self) -> Locator:
        return self.page.get_by_role("complementary", name="Look inside")

    async def open_details(self) -> Locator:
        toggle = self.button("Look inside")
        if await toggle.get_attribute("aria-expanded") == "false":
            await toggle.click()
        return self.details

    async def close_details(self) -> None:
        await self.button("Close this panel").click()

    async def disconnect(self) -> None:
        await self.open_details()
        await self.button("Drop the connection").click()

    async def check_digest(self, text: str = "✓ Integrity verified") -> None:
        """Wait until the page shows this result of the digest comparison."""
        await self.open_details()
        await expect(self.details.get_by_text(text, exact=True)).to_be_visible()

    async def events(self) -> list[SeenEvent]:
        """Return all events of the last answer, as the server sends them."""
        url = f"{self.server.url}/bp/ai/stream/{self.streams[-1]}"
        async with self.server.http.get(url, headers={_TOKEN: self.token}) as response:
            return await all_events(response)

    async def history(self) -> list[dict[str, Any]]:
        """Return the messages of the conversation from the history, oldest first."""
        async with self.server.http.get(
            f"{self.server.url}/bp/ai/conversation/query",
            params={"conversation_id": self.conversation_id},
            headers={_TOKEN: self.token},
        ) as response:
            answer = await response.json()
            assert response.status == 200, answer
        records = sorted(answer["data"]["conversation_records"], key=itemgetter("record_id"))
        return [message for record in records for message in record["content"]]

    async def stored(self, role: str) -> list[str]:
        """Return the paragraphs of the last message of `role` in the history."""
        message = [message for message in await self.history() if message["role"] == role][-1]
        return [item["text"] for item in message["content"] if item["type"] == "text"]


def plain(text: str) -> str:
    """Return `text` in lower case and without punctuation, to compare transcripts."""
    return " ".join(re.findall(r"[a-z']+", text.lower()))
