"""The answer of a turn while it is generated: emits events, feeds the speaker, and builds the stored message."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from actors.clients.strategies import Strategy
from actors.plays.records import audio_item, source, text_item
from actors.plays.speaker import Speaker
from actors.runtime.context import StreamContext
from streams.events import AssistantOutputContentSegment, AssistantOutputRestart
from streams.paragraphs import Paragraphs, Part
from streams.push import drain_into
from vendors.protocols import WITHDRAWAL, ChatItem, Finish, FinishReason, TextDelta


class Answer:
    """One answer, possibly continued by several strategies. `strategy` is the one that wrote last."""

    __slots__ = (
        "_began",
        "_ctx",
        "_cut",
        "_is_withdrawn",
        "_paragraphs",
        "_received",
        "_segments",
        "_size",
        "finish_reason",
        "speaker",
        "strategy",
    )

    def __init__(self, ctx: StreamContext) -> None:
        self.strategy: Strategy | None = None
        self.speaker: Speaker | None = None
        self.finish_reason: FinishReason = "stop"
        self._size = 0
        self._cut = False
        self._is_withdrawn = False
        self._received: list[str] = []
        self._began = False
        self._ctx = ctx
        self._segments: list[AssistantOutputContentSegment] = []
        self._paragraphs = Paragraphs("\n\n")

    @property
    def received(self) -> str:
        """All text received from the models since the last restart, including delimiters."""
        return "".join(self._received)

    @property
    def empty(self) -> bool:
        return not self._segments and not self._paragraphs.open_text

    @property
    def delimiter(self) -> str:
        """The text that separates paragraphs."""
        return self._paragraphs.delimiter

    def resume(
        self, writer: Strategy, segments: list[AssistantOutputContentSegment], open_text: str, received: str
    ) -> None:
        """Set the state of an answer that `writer` has begun in another process."""
        self.set_writer(writer)
        self._paragraphs.resume(len(segments), open_text)
        self._segments, self._received, self._size = segments, [received], len(received.encode())
        self._began = True

    def set_writer(self, strategy: Strategy) -> None:
        """Set the strategy that writes from now on: it begins the answer, or continues that of another strategy."""
        if self.strategy is None:
            self._paragraphs = Paragraphs(strategy.config.paragraph_delimiter)
        self.strategy = strategy

    async def restart(self) -> None:
        """Discard the answer so far and tell the client to discard it."""
        self.strategy, self._received = None, []
        self._segments, self._paragraphs = [], Paragraphs("\n\n")
        await self._ctx.emit(AssistantOutputRestart(0))

    async def write(self, items: AsyncIterator[ChatItem]) -> bool:
        """Emit a reply as it arrives. Each delta is processed in the callback of its socket read.

        Return whether it is complete. If not, its text so far is withdrawn, and more follows after `restart`.
        """
        while await drain_into(items, self._accept) and not self._cut:
            if self._is_withdrawn:
                self._is_withdrawn = False
                return False
            await self._ctx.wait_for_room()
        self._emit(self._paragraphs.finish())
        await self._ctx.wait_for_room()
        return True

    def _accept(self, item: ChatItem) -> bool:
        """Process one item and return whether more are accepted now. An answer that is too long is truncated."""
        if not isinstance(item, TextDelta):
            if isinstance(item, Finish):
                self.finish_reason = item.reason
            self._is_withdrawn = item is WITHDRAWAL
            return not self._is_withdrawn
        text = item.text.replace("\0", "")
        self._size += len(text) if text.isascii() else len(text.encode())
        if (excess := self._size - self._ctx.answer_bytes) > 0:
            raw = text.encode()
            text = raw[: max(0, len(raw) - excess)].decode(errors="ignore")
            self._cut, self.finish_reason = True, "length"
        self._received.append(text)
        return self._emit(self._paragraphs.feed(text)) and not self._cut

    def _emit(self, parts: list[Part]) -> bool:
        room = True
        if parts and not self._began:
            self._began = True
            self._ctx.receipt.first_output()
            self._ctx.receipt.mark("first_text")
        for part in parts:
            room = self._ctx.say(part)
            if type(part) is AssistantOutputContentSegment:  # `isinstance` is slow for subclasses of `ABC`.
                self._segments.append(part)
                if self.speaker is not None:
                    self.speaker.close(part.index)
            elif self.speaker is not None:
                self.speaker.feed(part.index, part.text)
        return room

    def heard_characters(self, heard_ms: int | None) -> Mapping[int, int] | None:
        """Return how many characters of each paragraph the listener heard, or `None` for the whole answer.

        `heard_ms`: the part of the audio that was played, in ms; `None` if the client did not report it.
        """
        if heard_ms is None or self.speaker is None:
            return None
        return self.speaker.playback.heard(heard_ms)

    def message(self, heard: Mapping[int, int] | None = None) -> dict[str, Any] | None:
        """Return the message to store, with the text and the audio of each paragraph, or `None` if it is empty.

        With `heard`, only the words that were heard are included, and the audio of paragraphs heard completely.
        """
        if self.strategy is None or self.empty:
            return None
        origin = source(self.strategy.platform, self.strategy.config.chat.model)
        delimiter = self.strategy.config.paragraph_delimiter
        texts = [(segment.index, segment.text) for segment in self._segments]
        if self._paragraphs.open_text:
            texts.append((self._paragraphs.open_index, self._paragraphs.open_text))
        full_texts = dict(texts)
        if heard is not None:
            last = max(heard, default=-1)  # All earlier paragraphs were heard completely.
            cut = [(index, text if index < last else text[: heard.get(index, 0)]) for index, text in texts]
            texts = [(index, text) for index, text in cut if text]
        items: list[dict[str, Any]] = []
        for index, text in texts:
            items.append(text_item(text, origin, delimiter=delimiter if index != texts[-1][0] else ""))
            if text == full_texts[index]:
                items += self._audio(index)
        return {"role": "assistant", "content": items} if items else None

    def _audio(self, index: int) -> list[dict[str, Any]]:
        if self.speaker is None or self.speaker.chosen is None or index not in self.speaker.stored:
            return []
        voice, stored = self.speaker.chosen[1], self.speaker.stored[index]
        spoken_by = source(voice.platform, voice.config.model)
        return [audio_item(stored.audio_key, spoken_by, viseme_key=stored.viseme_key)]
