"""Split an answer in Markdown into sentences: as they are written, and as they are spoken.

The result does not depend on how the answer is divided into deltas.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from streams.spoken.fences import CLOSING, QUOTED, Fence, end_of_code, fence_behind_text, fence_of, fence_within
from streams.spoken.inline import MARKS, spoken_inline, spoken_row
from streams.spoken.lines import Line, Surroundings, kind_of
from streams.spoken.splitting import Sentences
from streams.spoken.words import words_of

_CLOSING_MARKS = "\"'”’»)]）】」』*"  # noqa: RUF001
_FIRST_IDEOGRAPHIC = "\u2e80"
_HANGUL = ("\uac00", "\ud7a3")
_COLONS = (":", "：")  # noqa: RUF001
_SHORT_BEGINNING = 64


class SpokenSentence(NamedTuple):
    """`written` is the text in the answer, `text` what is spoken of it, which may be empty."""

    written: str
    text: str


class SpokenSentences:
    """The sentences of one answer. Their `written` texts joined are exactly the answer."""

    def __init__(self, language_code: str) -> None:
        self._splitter = Sentences(language_code)
        self._words = words_of(language_code)
        self._state: Literal["begin", "prose", "whole"] = "begin"
        """`begin`: the kind of the current line is not known. `whole`: it is read up to its end."""
        self._parts: list[str] = []
        """The beginning of the current line, unless it is prose."""
        self._length = 0
        """The number of characters in `parts`."""
        self._next_look = 0
        """The length at which the beginning is looked at again."""
        self._kind = Line("blank")
        self._around = Surroundings()
        self._fence: Fence | None = None
        """The fence that has begun the code."""
        self._quotes = 0
        """The number of block quotes that the current line is in."""
        self._fences_before = 0
        """Fences in the sentences of the block that are complete."""
        self._block: Sentences | None = None
        """The sentences of the current paragraph, heading or item, whose next line may continue it."""
        self._lead = ""
        """What is spoken before the next sentence: the number of an item."""
        self._line_break = ""
        """The end of the last line of the block."""
        self._out: list[SpokenSentence] = []

    def feed(self, delta: str) -> list[SpokenSentence]:
        """Return the sentences that `delta` completes."""
        if "\n" in delta:
            *lines, delta = delta.split("\n")
            for line in lines:
                self._add(line)
                self._end_line("\n")
        if delta:
            self._add(delta)
        return self._taken()

    def finish(self) -> list[SpokenSentence]:
        """End the paragraph, and return its remaining sentences. Code and lists may continue in the next one."""
        if self._parts or self._state == "prose":
            self._end_line("")
        self._end_block()
        self._around.after_blank, self._around.in_table = True, False
        return self._taken()

    def _taken(self) -> list[SpokenSentence]:
        taken, self._out = self._out, []
        return taken

    def _add(self, part: str) -> None:
        if self._state == "prose":
            self._say(part)
        elif part:
            self._parts.append(part)
            self._length += len(part)
            if self._state == "begin" and self._length >= self._next_look:
                self._decide(is_complete=False)

    def _decide(self, *, is_complete: bool) -> None:
        """Find the kind of the current line, as far as its beginning is known.

        A long beginning is looked at again when it has grown by half: all looks together take linear time.
        """
        line = "".join(self._parts)
        self._parts = [line]
        self._next_look = self._length * 3 // 2 if self._length > _SHORT_BEGINNING else 0
        if self._fence:
            if not is_complete and (not line.lstrip(CLOSING) or line.lstrip(QUOTED).startswith(self._fence.mark)):
                return
            self._fence = fence_within(line, self._fence)
        kind = Line("code") if self._fence else kind_of(line, self._around, is_complete=is_complete)
        if kind is None:
            return
        self._kind = kind
        if kind.number:
            self._around.number = int(kind.number)
        self._around.label = kind.label or self._around.label
        continues = kind.kind == "prose" and (self._around.in_paragraph or self._around.in_item)
        if kind.kind == "table_rule":
            self._end_header()
        if not continues:
            self._end_block(is_followed=True)
        if kind.kind in {"prose", "heading", "item", "title"}:
            self._begin_prose(kind, continues=continues)
        else:
            self._state = "whole"

    def _taken_line(self) -> str:
        line, self._parts, self._length, self._next_look = "".join(self._parts), [], 0, 0
        return line

    def _begin_prose(self, kind: Line, *, continues: bool) -> None:
        line, self._state = self._taken_line(), "prose"
        self._quotes = line[: kind.prefix].count(">")
        if continues:
            line_break, self._line_break = self._line_break, ""
            self._say(line_break + line)
            return
        self._put(line[: kind.prefix], "")
        self._block = self._splitter
        self._fences_before = 0
        self._lead = f"{kind.number}. " if kind.number and kind.kind == "item" else ""
        if self._lead:
            self._splitter.begin_item(kind.number)
        around, is_item = self._around, kind.kind in {"item", "title"}
        around.in_paragraph, around.in_item = kind.kind == "prose", is_item
        around.after_blank = around.in_code = around.in_table = False
        if is_item:
            around.column = kind.column
        elif kind.column < around.column:
            around.column = 0
        self._say(line[kind.prefix :])

    def _say(self, part: str) -> None:
        assert self._block is not None, "prose is in a block"
        for written in self._block.feed(part):
            self._fences_before += written.count("```")
            self._put(written, self._spoken(written))

    def _end_line(self, line_break: str) -> None:
        if self._state == "begin":
            self._decide(is_complete=True)
        if self._state == "prose" and not self._begins_code(line_break):
            self._line_break = line_break
            end = "" if self._block is None else self._block.tail
            self._around.after_colon = end.rstrip(" \t\r*_").endswith(_COLONS)
            if self._kind.kind == "heading":
                self._end_block()
        elif self._state == "whole":
            self._end_whole_line(self._taken_line() + line_break)
        self._state = "begin"

    def _begins_code(self, line_break: str) -> bool:
        """Begin code if the line of prose ends with a fence. Return whether it does."""
        assert self._block is not None, "prose is in a block"
        if "```" not in self._block.tail:
            return False
        found = fence_behind_text(self._block.tail, self._fences_before)
        if found is None:
            return False
        opening = self._block.without_end(len(found[0]))
        self._end_block(is_followed=True)
        self._put(opening + line_break, "")
        self._fence = Fence(found[1], self._quotes, self._around.column)
        return True

    def _end_whole_line(self, line: str) -> None:
        kind, around = self._kind.kind, self._around
        if kind == "fence":
            self._fence = fence_of(line, around.column)
        elif self._fence and (end := end_of_code(line, self._fence.mark)) >= 0:
            self._fence = None
            text = line[end:].rstrip("\n")
            if text:
                self._put(line[:end], "")
                self._state = "begin"
                self._add(text)
                self._end_line(line[end + len(text) :])
                return
        around.after_blank = kind == "blank"
        around.in_code = kind == "code" or (kind == "blank" and around.in_code)
        around.in_table = kind == "table_rule" or (kind == "row" and around.in_table)
        text = _ended(spoken_row(line[self._kind.prefix :], self._words)) if kind == "row" else ""
        self._put(line, text)

    def _end_header(self) -> None:
        """Take the header of a table, which looked like prose without a pipe at its start, out of the paragraph."""
        header = "" if self._block is None else self._block.tail.rpartition("\n")[2]
        if self._block is None or "|" not in header:
            return
        self._block.without_end(len(header))
        line_break, self._line_break = self._line_break, ""
        self._end_block(is_followed=True)
        self._put(header + line_break, _ended(spoken_row(header, self._words)))

    def _end_block(self, *, is_followed: bool = False) -> None:
        """End the paragraph, heading or item. Its last sentence gets a full stop, at which the voice pauses.

        Only a paragraph that ends the audio needs none. `is_followed`: more of the same audio may follow.
        """
        if self._block is None:
            return
        rest, self._block = self._block.finish(), None
        for number, written in enumerate(rest, 1):
            text = self._spoken(written)
            needs_stop = number == len(rest) and (is_followed or not self._around.in_paragraph)
            self._put(written, _ended(text) if needs_stop else text)
        self._put(self._line_break, "")
        self._line_break = ""
        self._around.in_paragraph = self._around.in_item = False

    def _spoken(self, written: str) -> str:
        text = spoken_inline(written, self._words)
        if not text:
            return ""
        lead, self._lead = self._lead, ""
        return lead + text

    def _put(self, written: str, text: str) -> None:
        if written:
            self._out.append(SpokenSentence(written, text))


def merged(sentences: Sequence[SpokenSentence], limit: int) -> tuple[SpokenSentence, int]:
    """Join as many sentences from the front as fit into `limit` characters, at least one.

    Return what they are together, and their number.
    """
    (written, text), count = sentences[0], 1
    for sentence in sentences[1:]:
        is_apart = written[-1:].isspace() or sentence.written[:1].isspace()
        longer = text + (" " if text and sentence.text and is_apart else "") + sentence.text
        if len(longer) > max(limit, len(text)):
            break
        written, text, count = written + sentence.written, longer, count + 1
    return SpokenSentence(written, text), count


def _ended(text: str) -> str:
    """Return `text` with a full stop, unless it ends with a mark, which may be in quotes or brackets."""
    core = text.rstrip(_CLOSING_MARKS)
    if not core or core.endswith(MARKS):
        return text
    is_ideographic = core[-1] >= _FIRST_IDEOGRAPHIC and not _HANGUL[0] <= core[-1] <= _HANGUL[1]
    return text + ("。" if is_ideographic else ".")
