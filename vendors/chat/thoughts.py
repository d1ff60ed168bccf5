"""Leaves the thoughts of a model out of its text, which some servers send between tags. Does no I/O.

A thought begins with `<think>` at the start of a line; elsewhere this is text, as in an answer about such tags. The
templates of some models put the opening tag into the prompt. Then the reply has only the closing tag, and all that
precedes it is a thought.
"""

import re
from dataclasses import dataclass

_CLOSING = re.compile(r"(?<!`)</think(?:ing)?>", re.IGNORECASE)
_TAG = re.compile(r"(?<!`)</?think(?:ing)?>", re.IGNORECASE)
_TAGS = ("<think>", "<thinking>", "</think>", "</thinking>")


@dataclass(slots=True)
class Habit:
    """What is known of a model's replies.

    `begins_inside`: they begin with a thought, without an opening tag. This is learned from the first such reply.
    """

    begins_inside: bool = False


class Thoughts:
    """The filter of one reply."""

    __slots__ = ("_before", "_habit", "_has_thought", "_held", "_inside", "_is_leading", "_unopened", "were_shown")

    def __init__(self, habit: Habit) -> None:
        self.were_shown = False
        """Whether returned text turned out to be a thought."""
        self._habit = habit
        self._inside = False
        self._has_thought = False
        """Whether a thought has ended. A further closing tag is left out alone."""
        self._unopened = habit.begins_inside
        """Whether text is held back because a closing tag would make it a thought."""
        self._held = ""
        self._before = ""
        """The text returned last, back to one that is not blank."""
        self._is_leading = False
        """Whether the next text follows a thought: its white space is left out."""

    def feed(self, text: str) -> str:
        """Return the text that is known to be no thought."""
        if "<" not in text and not (self._held or self._inside or self._unopened or self._is_leading):
            if text and not text.isspace():
                self._before = text
                return text  # The usual delta.
            return self._returned(text)
        text, self._held = self._held + text, ""
        said = ""
        while text and not self.were_shown:
            part, text = self._next(text)
            said += self._returned(part)
        return said

    def end(self) -> str:
        """Return what was held back."""
        held, self._held, self._unopened = self._held, "", False
        return "" if self._inside else self._returned(held)

    def _next(self, text: str) -> tuple[str, str]:
        """Return the text up to the next tag that matters, and what is left to read. Keep what is uncertain."""
        hidden = self._inside or self._unopened
        tag = (_CLOSING if hidden else _TAG).search(text)
        if tag is None:
            certain = 0 if self._unopened else len(text) - _beginning_of_tag(text)
            self._held = text[certain:]
            return "" if self._inside else text[:certain], ""
        before, after = text[: tag.start()], text[tag.end() :]
        if not (hidden or before) and self._before.endswith("`"):
            return tag[0], after
        if not hidden and not tag[0].startswith("</"):
            if not self._is_at_line_start(before):
                return before + tag[0], after
            self._inside = True
            return before, after
        if not hidden and self._has_thought:
            return before, after
        if not hidden:
            self._habit.begins_inside = True
            self.were_shown = bool(self._before.strip())
        self._inside, self._unopened, self._is_leading, self._has_thought = False, False, True, True
        return "", after

    def _is_at_line_start(self, before: str) -> bool:
        line = (self._before + before).rstrip(" \t")
        return not line or line.endswith("\n")

    def _returned(self, text: str) -> str:
        if self._is_leading:
            text = text.lstrip()
            self._is_leading = not text
        if text:
            self._before = self._before + text if text.isspace() else text
        return text


def _beginning_of_tag(text: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of a tag."""
    at = text.rfind("<")
    rest = text[at:].lower() if at >= 0 else ""
    return len(rest) if rest and any(tag.startswith(rest) for tag in _TAGS) else 0
