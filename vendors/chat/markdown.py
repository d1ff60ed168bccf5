"""Where in the Markdown of an answer a position is: in code, or at the start of a line or sentence. Does no I/O."""

import re
import unicodedata

from streams.spoken.fences import Fence, column_after, fence_after, fence_within, width

_TICKS = re.compile("`+")
_LINE_START = re.compile(r"[\s>\u200b\u2060\ufeff]*[*_]{0,3}")
_SENTENCE_END = re.compile(r"[.!?…。\uff01\uff1f]['\")\]*_”\u2019»」]{0,4}\s*$")
_LIST_NUMBER = re.compile(r"\s*\d{1,3}\.\s*")
_ENDS_OF_WORDS = frozenset(",;:.!?…)\ufe0f\uff0c\u3001\uff1b\uff1a\u060c\u061b")
_CASED_DIGIT_OR_EMOJI = frozenset({"Lu", "Ll", "Nd", "So", "Sk"})
"""Categories of Unicode characters. Letters without case are left out: many of their scripts write no spaces."""
_LETTERS_WITHOUT_CASE = frozenset({"Lo", "Mn", "Mc"})
_ENDS_OF_SENTENCES = frozenset(".!?…。\uff01\uff1f।॥\u061f\u06d4")
_AFTER_MARK = re.compile(
    r".*[,:;\uff0c\u3001\uff1b\uff1a\u060c\u061b][ \t]+|[ \t>]*(?:[-*+•]|\d{1,3}[.)])[ \t]+", re.DOTALL
)
"""The text before a tag that follows a comma, a colon or the mark of a list."""
_CODE_INDENT = 4
_QUOTATION_MARKS = ('"', "'", "“", "„", "«", "\u2018")
_KEPT_OF_LINE = 400


class MarkdownPlace:
    """The position behind the text so far.

    Text is appended to `unread`, and read only when the position matters. No run of backticks may be split then.
    """

    __slots__ = ("_column", "_fence", "_has_text", "_is_after_blank", "_line", "_may_indent", "_ticks", "_unread")

    def __init__(self, unread: list[str]) -> None:
        self._unread = unread
        self._line = ""
        """The current line, without its middle if it is long."""
        self._fence: Fence | None = None
        """The open fence."""
        self._column = 0
        """Where the content of the current list item begins. 0: outside lists."""
        self._is_after_blank = False
        self._has_text = False
        """Whether a line before has text."""
        self._may_indent = False
        """Whether the current line is code if it is indented."""
        self._ticks = 0
        """The length of the run of backticks that has opened inline code in the current line."""

    def is_code(self) -> bool:
        self._read()
        is_known = self._fence is not None and self._line.strip(" \t>")
        fence = fence_within(self._line, self._fence) if self._fence and is_known else self._fence
        return bool(fence or self._ticks or (self._may_indent and self._is_indented()))

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

    def ends_text(self) -> bool:
        """Whether it follows a word or sentence, which in many scripts has no space behind it."""
        self._read()
        line = self._line.rstrip(" \t")
        last = line[-1:]
        if len(line) < len(self._line) or last in _ENDS_OF_SENTENCES:
            return last in _ENDS_OF_SENTENCES and not _LIST_NUMBER.fullmatch(self._line)
        return self.is_attached() or bool(last and unicodedata.category(last) in _LETTERS_WITHOUT_CASE)

    def follows_mark(self) -> bool:
        """Whether it is the start of an item, or follows a comma or colon and a space."""
        self._read()
        return _AFTER_MARK.fullmatch(self._line) is not None

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
            self._line = _without_middle(self._line)

    def _is_indented(self) -> bool:
        indent = self._line[: len(self._line) - len(self._line.lstrip(" \t"))]
        return width(indent) >= self._column + _CODE_INDENT

    def _end_line(self) -> None:
        text = self._line.rstrip()
        is_code = self._may_indent and self._is_indented()
        self._has_text = self._has_text or bool(text)
        self._may_indent = self._has_text and (is_code or not text or text.endswith((":", "\uff1a")))
        self._fence = fence_after(self._line, self._fence, self._column)
        if self._fence is None:
            self._column = column_after(self._line, self._column)
        self._is_after_blank = not self._line.strip()
        self._line, self._ticks = "", 0


def _without_middle(line: str) -> str:
    """Shorten a line. Fences still have the same meaning in it: that depends on the backticks before them."""
    half = _KEPT_OF_LINE // 2
    begin, end = line[:half], line[-half:]
    middle = " "
    if (line.count("```") - begin.count("```") - end.count("```")) % 2:
        middle = " ``` "
    elif line.count("`") > begin.count("`") + end.count("`"):
        middle = " ` "
    return begin + middle + end
