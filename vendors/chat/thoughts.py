"""Leaves the thoughts of a model out of its text, which some servers send between tags. Does no I/O.

The tags are those of `thought_tags`.

- An opening tag begins a thought at the start of a line, after the end of a sentence, directly behind a word, and
  directly after another thought. White space, `>` and emphasis marks may precede it on its line. It also does so
  after a comma or colon and at the start of an item, if text directly follows. Anywhere else it is text, as in an
  answer about such tags, and so is the closing tag that follows it.
- Tags in fences, in indented and inline code, and in quotation marks are text.
- A thought ends with the first closing tag of its kind that has no quotation marks or backticks on both sides. If
  none follows by the end of the reply, it was no thought, and its text is returned then. If there is no other text,
  the reply is empty, which is an error, because the limit of tokens has cut off the thought.
- A closing tag without an opening one ends a thought at the beginning of the reply. If it is the first tag, it also
  does so at the start of a line, and behind a word or sentence if a blank line or the end of the reply follows: the
  templates of some models put the opening tag into the prompt. The text before it is withdrawn. Anywhere else it is
  text, except that after an earlier thought it is left out if text directly precedes.
- Nothing is learned from a reply, because the next one may be that of another user. Only the operator can say that
  replies begin with a thought (`begins_inside`). Then text is held back until a closing tag, or the end of the
  reply.
"""

import re

from vendors.chat.markdown import MarkdownPlace
from vendors.chat.thought_tags import START, Tag, beginning_of_tag, find_tag

_PIECE = 4096
_OPENING_MARK = re.compile(r"(?:^|[\s(\[{=,:>])([\"'`“„«\u2018])$")
_CLOSING_MARKS = frozenset("\"'`”“»\u2019")
_MARKS_ONLY = re.compile(r"[\s>\u200b\u2060\ufeff]{0,80}[*_]{0,3}")
"""What may precede a thought at the beginning of a reply. It is left out with the thought."""
_BLANK = " \t\r\n\u200b\u2060\ufeff"
_SPACES = " \t\r"
_CONTINUES = tuple(",.;:!?)]}|")
"""What a sentence continues with behind a tag at the start of its line."""
_DECIDING = 200
"""How many characters behind a tag decide at most whether it is text."""
_BLANK_LINE = re.compile(r"[ \t\r]*\n[ \t\r]*\n")
_MAYBE_BLANK_LINE = re.compile(r"[ \t\r]*(?:\n[ \t\r]*)?")


class Thoughts:
    """The filter of one reply."""

    __slots__ = (
        "_emphasis",
        "_ends",
        "_has_open_tag",
        "_has_said",
        "_has_tag",
        "_has_thought",
        "_held",
        "_hidden",
        "_is_usual",
        "_kept",
        "_kind",
        "_lead",
        "_place",
        "_unread",
        "was_withdrawn",
        "were_shown",
    )

    def __init__(self, *, begins_inside: bool = False, continues: str = "") -> None:
        """`continues` is the text that the reply continues. A continuation withdraws nothing."""
        self.were_shown = False
        """Whether all text returned so far turned out to be a thought. Text that follows is returned later."""
        self.was_withdrawn = False
        """Whether `were_shown` was ever set."""
        self._hidden = "begun" if begins_inside and not continues else ""
        """The opening tag of the current thought, or `begun`. Empty outside of thoughts."""
        self._kept: list[str] = []
        """The text of a thought that is text if no closing tag follows."""
        self._kind: int | None = None
        """The kind of tags of the current thought. None: any kind ends it."""
        self._has_tag = bool(continues)
        self._has_open_tag = False
        """Whether an opening tag was text, so that its closing tag is text, too."""
        self._has_thought = False
        self._has_said = bool(continues)
        """Whether text was returned that is not withdrawn."""
        self._held = ""
        """Text that is read again with the next one, because its meaning is not known yet."""
        self._lead: str | None = None if continues else ""
        """White space and marks at the beginning of the reply or after a thought, while nothing else follows."""
        self._emphasis = ""
        """The emphasis marks around a thought at the beginning of the reply."""
        self._unread: list[str] = [continues] if continues else []
        """The text that `_place` has not read yet."""
        self._place: MarkdownPlace | None = None
        self._is_usual = False
        """Whether a text without a tag is returned as it is."""
        self._ends = False
        """Whether the text that is being read is the last one."""

    def feed(self, text: str) -> str:
        """Return the text that is known to be no thought."""
        if self._is_usual and "<" not in text and "[" not in text and "◁" not in text:
            self._unread.append(text)
            return text
        return self._filtered(text)

    def end(self, text: str = "") -> str:
        """Return what is no thought of the last text, and what was held back."""
        if self._is_usual and not text:
            return ""
        said = self._filtered(text, is_last=True)
        if self.were_shown:
            said = self._filtered("", is_last=True)
        hidden, self._hidden = self._hidden, ""
        if hidden:
            opening = "" if hidden == "begun" else hidden
            return "".join([said, opening, *self._kept]) if self._has_said or not opening else ""
        return said + ("" if self._has_thought else self._lead or "")

    def cut(self, text: str) -> str:
        """Return what is no thought of the last text before a cut, and what may be the beginning of a tag.

        Tags whose meaning the following text would have decided are left out. Nothing is returned of a reply that
        only has the beginning of a tag, so that another model can still answer.
        """
        said = self.feed(text)
        if self.were_shown:
            said = self.feed("")
        if self._hidden or not self._has_said or find_tag(self._held) is not None:
            return said
        held, self._held = self._held, ""
        return said + held

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of the text, because it was withdrawn."""
        return self.was_withdrawn and not self._has_said

    @property
    def hides(self) -> bool:
        """Whether the next text is held back as a thought."""
        return bool(self._hidden)

    def _filtered(self, text: str, *, is_last: bool = False) -> str:
        was_said, said = self._has_said, ""
        # Short pieces, because each tag copies what is left to read.
        for at in range(0, len(text) or 1, _PIECE):
            behind = at + _PIECE
            self._ends = is_last and behind >= len(text)
            part = self._read(text[at:behind])
            if part is None and was_said:
                self.were_shown = self.was_withdrawn = True
                self._held += text[behind:]
                self._is_usual = False
                return ""
            said = self._read("") or "" if part is None else said + part
        self._is_usual = not (self._held or self._hidden) and self._lead is None
        return said

    def _read(self, text: str) -> str | None:
        """Return the text that is known to be no thought, or None if all text so far is one."""
        text, self._held = self._held + text, ""
        said = ""
        while text:
            if self._hidden:
                text = self._hide(text)
                continue
            part, text = self._next(text)
            if part is None:
                self._held, self._has_said = text, False
                return None
            said += self._with_lead(part)
            self._has_said = self._has_said or bool(said)
        return said

    def _next(self, text: str) -> tuple[str | None, str]:
        """Return the text up to the next tag, or that tag if it is text, and what is left to read.

        Return None if all text before is a thought. Text whose meaning is not known yet is kept.
        """
        tag = find_tag(text)
        if tag is None:
            certain = len(text) if self._ends else len(text) - beginning_of_tag(text)
            part, self._held = text[:certain], text[certain:]
            self._unread.append(part)
            return part, ""
        if tag.start:
            self._unread.append(text[: tag.start])
            return text[: tag.start], text[tag.start :]
        return self._read_tag(text, tag)

    def _read_tag(self, text: str, tag: Tag) -> tuple[str | None, str]:
        """Do the same as `_next` for text that begins with a tag."""
        after = text[tag.end :]
        is_text = self._is_text(tag, after)
        if is_text is None:
            self._held = text
            return "", ""
        withdraws = tag.is_closing and not (self._has_tag or self._has_thought)
        self._has_tag = True
        if is_text:
            self._has_open_tag = not tag.is_closing
            self._unread.append(text[: tag.end])
            return text[: tag.end], after
        if not tag.is_closing:
            self._begin(text[: tag.end], tag)
            return "", after
        self._end_thought()
        if withdraws:
            self._lead = ""
            return None, after
        return "", after

    def _is_text(self, tag: Tag, after: str) -> bool | None:
        """Return whether a tag outside of thoughts is text, or None if that is not known yet."""
        place = self._here()
        if place.is_code():
            return True
        if not tag.is_closing:
            if place.begins_sentence() or place.is_attached() or self._follows_thought():
                return False
            return True if not place.follows_mark() else self._is_apart(after)
        if self._lead is not None:
            return self._has_tag and not self._has_thought
        if self._has_thought:
            is_apart = place.ends_with_mark() or (place.ends_with_space() and not place.is_line_blank())
            return self._has_open_tag or is_apart
        return self._has_tag or self._is_end_of_sentence(after)

    def _is_apart(self, after: str) -> bool | None:
        """Return whether a tag is text because a space or a mark follows, as in an answer about such tags."""
        if not after:
            return True if self._ends else None
        return after[0].isspace() or after.startswith((*_CONTINUES, "…"))

    def _is_end_of_sentence(self, after: str) -> bool | None:
        """Return whether the first tag is text. It is a closing one that follows other text."""
        place = self._here()
        after = after[:_DECIDING]
        if self._ends or len(after) == _DECIDING:
            after += "\n\n"
        if not place.is_line_blank():
            if not place.ends_text():
                return True
            return None if _MAYBE_BLANK_LINE.fullmatch(after) else _BLANK_LINE.match(after) is None
        line = after.lstrip(_SPACES)
        if not line:
            return None
        is_directly_followed = len(line) == len(after) or place.is_after_blank_line()
        return line[0] != "\n" and (line.startswith(_CONTINUES) or not is_directly_followed)

    def _here(self) -> MarkdownPlace:
        """Return the position behind the text so far."""
        if self._place is None:  # Most replies have no tag.
            self._place = MarkdownPlace(self._unread)
        return self._place

    def _follows_thought(self) -> bool:
        return self._has_thought and self._lead is not None

    def _begin(self, text: str, tag: Tag) -> None:
        if self._lead is not None and not self._has_thought:
            self._emphasis = self._lead.lstrip(_BLANK + ">")
        self._has_open_tag = False
        if tag.is_empty:
            self._end_thought()
            return
        self._hidden, self._kind, self._kept = text, tag.kind, []

    def _hide(self, text: str) -> str:
        """Read the text of a thought. Return what follows its end."""
        may_end = START.search(text) is not None
        at, tag = 0, self._closing(text, 0) if may_end else None
        while tag is not None:
            is_marked = _OPENING_MARK.search(text[max(0, tag.start - 2) : tag.start]) is not None
            if is_marked and tag.end == len(text) and not self._ends:
                break
            if not is_marked or text[tag.end : tag.end + 1] not in _CLOSING_MARKS:
                self._end_thought()
                return text[tag.end :]
            at = tag.end
            tag = self._closing(text, at)
        # The two characters before a tag say whether it is quoted.
        uncertain = beginning_of_tag(text) if may_end else 0
        if tag is not None:
            uncertain = len(text) - tag.start
        certain = len(text) if self._ends else max(at, len(text) - uncertain - 2)
        if self._has_said or self._hidden == "begun":
            self._kept.append(text[:certain])
        self._held = text[certain:]
        return ""

    def _closing(self, text: str, at: int) -> Tag | None:
        tag = find_tag(text, at)
        while tag is not None and not (tag.is_closing and self._kind in (None, tag.kind)):
            tag = find_tag(text, tag.end)
        return tag

    def _end_thought(self) -> None:
        self._hidden, self._kept, self._has_thought = "", [], True
        if self._here().ends_with_space() or self._lead is not None:
            self._lead = ""

    def _with_lead(self, part: str) -> str:
        """Return a part of the answer without white space after a thought. Hold back marks before one."""
        if self._lead is None:
            return part
        text = self._lead + part
        if self._has_thought:
            text = text.lstrip(_BLANK)
            if self._emphasis and self._emphasis.startswith(text):
                self._lead = text
                return ""
            if self._emphasis:
                text, self._emphasis = text.removeprefix(self._emphasis).lstrip(_BLANK), ""
        if _MARKS_ONLY.fullmatch(text) and (not self._has_thought or not text):
            self._lead = text
            return ""
        self._lead, self._emphasis = None, ""
        return text
