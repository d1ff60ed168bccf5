"""Leaves the thoughts of a model out of its text, which some servers send between tags. Does no I/O.

The tags are `<think>`, `<thinking>`, `<thought>`, `[THINK]` and `◁think▷`, and the same with a slash.

- An opening tag begins a thought at the start of a line, after the end of a sentence, and directly after another
  thought. White space, `>` and emphasis marks may precede it on its line. Anywhere else it is text, as in an
  answer about such tags.
- Tags in fences, in inline code and in quotation marks are text.
- A thought ends with the first closing tag that has no quotation marks or backticks on both sides. If none follows
  by the end of the reply, it was no thought, and its text is returned then. If there is no other text, the reply
  is empty, which is an error, because the limit of tokens has cut off the thought.
- A closing tag without an opening one ends a thought at the beginning of the reply, and where it stands alone on
  its line and is the first tag: the templates of some models put the opening tag into the prompt. The text before
  it is withdrawn. Anywhere else it is text, except that after an earlier thought it is left out if text directly
  precedes.
- Nothing is learned from a reply, because the next one may be that of another user. Only the operator can say that
  replies begin with a thought (`begins_inside`). Then text is held back until a closing tag, or the end of the
  reply.
"""

import re

from vendors.chat.markdown import MarkdownPlace

_NAMES = "(?i:(?:seed:)?th(?:ink|inking|ought))"
_TAG = re.compile(rf"<(/?){_NAMES}\s{{0,9}}>|\[(/?)THINK\]|◁(/?)think▷")
_CLOSING = re.compile(rf"</{_NAMES}\s{{0,9}}>|\[/THINK\]|◁/think▷")
_NAMED = ("think", "thinking", "thought", "seed:think")
_TAGS = (
    *(f"<{slash}{name}>" for name in _NAMED for slash in ("", "/")),
    *("[THINK]", "[/THINK]", "◁think▷", "◁/think▷"),
)
_LONGEST_TAG = 24
_PIECE = 4096
_OPENING_MARK = re.compile(r"(?:^|[\s(\[{=,:>])([\"'`“„«\u2018])$")
_CLOSING_MARKS = frozenset("\"'`”“»\u2019")
_MARKS_ONLY = re.compile(r"[\s>\u200b\u2060\ufeff]{0,80}[*_]{0,3}")
"""What may precede a thought at the beginning of a reply. It is left out with the thought."""
_BLANK = " \t\r\n\u200b\u2060\ufeff"


class Thoughts:
    """The filter of one reply."""

    __slots__ = (
        "_emphasis",
        "_has_said",
        "_has_tag",
        "_has_thought",
        "_held",
        "_hidden",
        "_is_usual",
        "_kept",
        "_lead",
        "_place",
        "_unread",
        "were_shown",
    )

    def __init__(self, *, begins_inside: bool = False) -> None:
        self.were_shown = False
        """Whether all text returned so far turned out to be a thought. Text that follows is returned later."""
        self._hidden = "begun" if begins_inside else ""
        """The opening tag of the current thought, or `begun`. Empty outside of thoughts."""
        self._kept: list[str] = []
        """The text of a thought that is text if no closing tag follows."""
        self._has_tag = False
        self._has_thought = False
        self._has_said = False
        """Whether text was returned that is not withdrawn."""
        self._held = ""
        """Text that is read again with the next one, because its meaning is not known yet."""
        self._lead: str | None = ""
        """White space and marks at the beginning of the reply or after a thought, while nothing else follows."""
        self._emphasis = ""
        """The emphasis marks around a thought at the beginning of the reply."""
        self._unread: list[str] = []
        """The text that `_place` has not read yet."""
        self._place: MarkdownPlace | None = None
        self._is_usual = False
        """Whether a text without a tag is returned as it is."""

    def feed(self, text: str) -> str:
        """Return the text that is known to be no thought."""
        if self._is_usual and "<" not in text and "[" not in text and "◁" not in text:
            self._unread.append(text)
            return text
        return self._filtered(text)

    def end(self) -> str:
        """Return what was held back, at the end of the reply."""
        said = self._read("") or ""
        held, self._held = self._held, ""
        hidden, self._hidden = self._hidden, ""
        if hidden:
            opening = "" if hidden == "begun" else hidden
            return "".join([said, opening, *self._kept, held]) if self._has_said or not opening else ""
        if (tag := _CLOSING.match(held)) is not None:
            held = held[tag.end() :]
        return said + (self._with_lead(held) or ("" if self._has_thought else self._lead or ""))

    @property
    def hides(self) -> bool:
        """Whether the next text is held back as a thought."""
        return bool(self._hidden)

    def _filtered(self, text: str) -> str:
        was_said, said = self._has_said, ""
        for at in range(0, len(text), _PIECE):  # Short pieces, because each tag copies what is left to read.
            part = self._read(text[at : at + _PIECE])
            if part is None and was_said:
                self.were_shown = True
                self._held += text[at + _PIECE :]
                said = ""
                break
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
        tag = _TAG.search(text)
        if tag is None:
            certain = len(text) - _beginning_of_tag(text)
            part, self._held = text[:certain], text[certain:]
            self._unread.append(part)
            return part, ""
        if tag.start():
            self._unread.append(text[: tag.start()])
            return text[: tag.start()], text[tag.start() :]
        after = text[tag.end() :]
        is_closing, is_first = any(tag.groups()), not self._has_tag
        if self._here().is_code():
            is_text: bool | None = True
        elif not is_closing:
            is_text = not (self._here().begins_sentence() or self._follows_thought())
        else:
            is_text = self._is_text(after, is_first=is_first)
        if is_text is None:
            self._held = text
            return "", ""
        self._has_tag = True
        if is_text:
            self._unread.append(tag[0])
            return tag[0], after
        if not is_closing:
            self._begin(tag[0])
            return "", after
        withdraws = is_first and not self._has_thought
        self._end_thought()
        return None if withdraws else "", after

    def _is_text(self, after: str, *, is_first: bool) -> bool | None:
        """Return whether a closing tag without an opening one is text, or None if that is not known yet."""
        if self._has_thought:
            place = self._here()
            is_apart = place.ends_with_mark() or (place.ends_with_space() and not place.is_line_blank())
            return self._lead is None and is_apart
        if not is_first or not self._here().is_line_blank():
            return not (is_first and self._lead is not None)
        line = after.lstrip(" \t\r")
        return None if not line else line[0] != "\n" and self._lead is None

    def _here(self) -> MarkdownPlace:
        """Return the position behind the text so far."""
        if self._place is None:  # Most replies have no tag.
            self._place = MarkdownPlace(self._unread)
        return self._place

    def _follows_thought(self) -> bool:
        return self._has_thought and self._lead is not None

    def _begin(self, tag: str) -> None:
        self._hidden = tag
        if self._lead is not None and not self._has_thought:
            self._emphasis = self._lead.lstrip(_BLANK + ">")
        self._kept = []

    def _hide(self, text: str) -> str:
        """Read the text of a thought. Return what follows its end."""
        at = 0
        while (tag := _CLOSING.search(text, at)) is not None:
            if _OPENING_MARK.search(text[max(0, tag.start() - 2) : tag.start()]) is None:
                self._end_thought()
                return text[tag.end() :]
            if tag.end() == len(text):
                break
            if text[tag.end()] not in _CLOSING_MARKS:
                self._end_thought()
                return text[tag.end() :]
            at = tag.end()
        # The two characters before a tag say whether it is quoted.
        uncertain = len(text) - tag.start() if tag is not None else _beginning_of_tag(text)
        certain = max(at, len(text) - uncertain - 2)
        if self._has_said or self._hidden == "begun":
            self._kept.append(text[:certain])
        self._held = text[certain:]
        return ""

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


def _beginning_of_tag(text: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of a tag."""
    at = max(text.rfind("<"), text.rfind("["), text.rfind("◁"))
    if at < 0 or len(text) - at > _LONGEST_TAG:
        return 0
    rest = text[at:]
    if rest[0] == "<":
        rest = rest.lower()
        if rest[-1].isspace():  # White space may follow the name.
            rest = rest.rstrip() + ">"
    return len(text) - at if any(tag.startswith(rest) for tag in _TAGS) else 0
