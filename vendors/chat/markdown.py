"""Where in the Markdown of an answer a position is: in code, or at the start of a line or sentence. Does no I/O."""

import re
import unicodedata

from streams.spoken.lines import closes, fence_of, text_behind_fence

_TICKS = re.compile("`+")
_LINE_START = re.compile(r"[\s>\u200b\u2060\ufeff]*[*_]{0,3}")
_SENTENCE_END = re.compile(r"[.!?…。\uff01\uff1f]['\")\]*_”\u2019»」]{0,4}\s*$")
_LIST_NUMBER = re.compile(r"\s*\d{1,3}\.\s*")
_ENDS_OF_WORDS = frozenset(",;:.!?…)\ufe0f")
_CASED_DIGIT_OR_EMOJI = frozenset({"Lu", "Ll", "Nd", "So", "Sk"})
"""Categories of Unicode characters. Letters without case are left out: many of their scripts write no spaces."""
_QUOTATION_MARKS = ('"', "'", "“", "„", "«", "\u2018")
_KEPT_OF_LINE = 400


class MarkdownPlace:
    """The position behind the text so far.

    Text is appended to `unread`, and read only when the position matters. No run of backticks may be split then.
    """

    __slots__ = ("_fence", "_is_after_blank", "_line", "_ticks", "_unread")

    def __init__(self, unread: list[str]) -> None:
        self._unread = unread
        self._line = ""
        """The current line, without its middle if it is long."""
        self._fence = ""
        """The mark of the open fence."""
        self._is_after_blank = False
        self._ticks = 0
        """The length of the run of backticks that has opened inline code in the current line."""

    def is_code(self) -> bool:
        self._read()
        return bool(self._fence or self._ticks)

    def is_line_blank(self) -> bool:
        self._read()
        return not self._line.strip()

    def is_after_blank_line(self) -> bool:
        self._read()
        return self._is_after_blank

    def begins_sentence(self) -> bool:
        """Whether it is the start of a line or follows the end of a sentence."""
        self._read()
        if _LINE_START.fullmatch(self._line):
            return True
        return _SENTENCE_END.search(self._line) is not None and not _LIST_NUMBER.fullmatch(self._line)

    def is_attached(self) -> bool:
        """Whether it directly follows a word or the punctuation behind one, where prose has a space."""
        self._read()
        last = self._line[-1:]
        is_word = last in _ENDS_OF_WORDS or (last and unicodedata.category(last) in _CASED_DIGIT_OR_EMOJI)
        return bool(is_word) and not _LIST_NUMBER.fullmatch(self._line)

    def ends_with_space(self) -> bool:
        self._read()
        return not self._line or self._line[-1].isspace()

    def ends_with_mark(self) -> bool:
        """Whether it follows a quotation mark."""
        self._read()
        return self._line.endswith(_QUOTATION_MARKS)

    def _read(self) -> None:
        text = "".join(self._unread)
        self._unread.clear()
        *lines, rest = text.split("\n")
        for line in lines:
            self._continue_line(line)
            self._end_line()
        self._continue_line(rest)

    def _continue_line(self, text: str) -> None:
        for run in _TICKS.findall(text):
            if not self._ticks:
                self._ticks = len(run)
            elif self._ticks == len(run):
                self._ticks = 0
        self._line += text
        if len(self._line) > _KEPT_OF_LINE:
            half = _KEPT_OF_LINE // 2
            self._line = self._line[:half] + self._line[-half:]

    def _end_line(self) -> None:
        if not self._fence:
            self._fence = fence_of(self._line)
        elif closes(self._line, self._fence) or text_behind_fence(self._line, self._fence):
            self._fence = ""
        self._is_after_blank = not self._line.strip()
        self._line, self._ticks = "", 0
