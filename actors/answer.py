"""What was said of an answer so far: given out as events, to the voice, and at the end to the record."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from actors.context import StreamContext
from actors.records import audio_item, source, text_item
from actors.speaker import Speaker
from actors.strategies import Strategy
from streams.events import AssistantOutputContentSegment, AssistantOutputRestart
from streams.paragraphs import Paragraphs, Part
from streams.push import drain_into
from vendors.protocols import ChatItem, Finish, FinishReason, TextDelta


class Answer:
    """One answer, whoever writes it: `strategy` is whose words came last."""

    __slots__ = (
        "_began",
        "_ctx",
        "_cut",
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
        self._received: list[str] = []
        self._began = False
        self._ctx = ctx
        self._segments: list[AssistantOutputContentSegment] = []
        self._paragraphs = Paragraphs("\n\n")

    @property
    def received(self) -> str:
        """All that the models wrote since the last restart, delimiters too."""
        return "".join(self._received)

    @property
    def empty(self) -> bool:
        return not self._segments and not self._paragraphs.open_text

    def written_by(self, strategy: Strategy) -> None:
        """`strategy` begins the answer, or goes on with what another began."""
        if self.strategy is None:
            self._paragraphs = Paragraphs(strategy.config.paragraph_delimiter)
        self.strategy = strategy

    async def restart(self) -> None:
        """What was said is void: the answer begins anew."""
        self.strategy, self._received = None, []
        self._segments, self._paragraphs = [], Paragraphs("\n\n")
        await self._ctx.emit(AssistantOutputRestart(0))

    async def write(self, items: AsyncIterator[ChatItem]) -> None:
        """Take a whole reply as it comes, each piece in the read that brings it."""
        while await drain_into(items, self._take) and not self._cut:
            await self._ctx.room()
        self._give(self._paragraphs.finish())
        await self._ctx.room()

    def _take(self, item: ChatItem) -> bool:
        """Whether more may come now. An answer that is too long is cut."""
        if not isinstance(item, TextDelta):
            if isinstance(item, Finish):
                self.finish_reason = item.reason
            return True
        text = item.text.replace("\0", "")
        self._size += len(text) if text.isascii() else len(text.encode())
        if (over := self._size - self._ctx.answer_bytes) > 0:
            raw = text.encode()
            text = raw[: max(0, len(raw) - over)].decode(errors="ignore")
            self._cut, self.finish_reason = True, "length"
        self._received.append(text)
        return self._give(self._paragraphs.feed(text)) and not self._cut

    def _give(self, parts: list[Part]) -> bool:
        room = True
        if parts and not self._began:
            self._began = True
            self._ctx.receipt.first_output()
            self._ctx.receipt.mark("first_text")
        for part in parts:
            room = self._ctx.say(part)
            if type(part) is AssistantOutputContentSegment:  # `isinstance` asks an abstract class at length
                self._segments.append(part)
                if self.speaker is not None:
                    self.speaker.close(part.index)
            elif self.speaker is not None:
                self.speaker.feed(part.index, part.text)
        return room

    def heard(self, heard_ms: int | None) -> Mapping[int, int] | None:
        """Of each paragraph, how many characters the listener heard; none where all of it counts as said."""
        if heard_ms is None or self.speaker is None:
            return None
        return self.speaker.playback.heard(heard_ms)

    def message(self, heard: Mapping[int, int] | None = None) -> dict[str, Any] | None:
        """As the record keeps it: text and audio paragraph by paragraph; nothing where nothing was said.

        With `heard` only the words that were, and the audio of paragraphs that were heard whole.
        """
        if self.strategy is None or self.empty:
            return None
        origin = source(self.strategy.platform, self.strategy.config.chat.model)
        delimiter = self.strategy.config.paragraph_delimiter
        texts = [(segment.index, segment.text) for segment in self._segments]
        if self._paragraphs.open_text:
            texts.append((self._paragraphs.open_index, self._paragraphs.open_text))
        whole = dict(texts)
        if heard is not None:
            last = max(heard, default=-1)  # of those before it every word was heard
            cut = [(index, text if index < last else text[: heard.get(index, 0)]) for index, text in texts]
            texts = [(index, text) for index, text in cut if text]
        items: list[dict[str, Any]] = []
        for index, text in texts:
            items.append(text_item(text, origin, delimiter=delimiter if index != texts[-1][0] else ""))
            if text == whole[index]:
                items += self._audio(index)
        return {"role": "assistant", "content": items} if items else None

    def _audio(self, index: int) -> list[dict[str, Any]]:
        if self.speaker is None or self.speaker.chosen is None or index not in self.speaker.stored:
            return []
        voice, kept = self.speaker.chosen[1], self.speaker.stored[index]
        spoken_by = source(voice.platform, voice.config.model)
        return [audio_item(kept.audio_key, spoken_by, viseme_key=kept.viseme_key)]
