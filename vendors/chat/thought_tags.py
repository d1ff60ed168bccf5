"""The tags between which models send thoughts in their text. Does no I/O."""

import re
from typing import NamedTuple

_SPACE = r"\s{0,9}"
_VALUE = "\"[^\"<>\\[◁]{0,40}\"|'[^'<>\\[◁]{0,40}'|[^\\s\"'<>\\[◁/]{1,40}"
_ATTRIBUTES = rf"(?:\s{{1,9}}[\w:-]{{1,24}}=(?:{_VALUE})){{0,2}}"


def _xml(*names: str) -> tuple[tuple[str, ...], str, str]:
    """Return the names in lower case, and the patterns of an opening and a closing tag."""
    any_name = "|".join(names)
    return (
        names,
        rf"<{_SPACE}(?:{any_name}){_ATTRIBUTES}{_SPACE}/?>",
        rf"<{_SPACE}/{_SPACE}(?:{any_name}){_SPACE}>",
    )


_TABLE = (
    # Most models. Prefixed names are those of Seed-OSS, MiniMax, LongCat and of prompts for Claude.
    _xml("think", "thinking", "thought", "thoughts", "seed:think", "mm:think", "longcat_think", "ant_thinking",
         "antthinking"),
    # Prompts that ask for `<reasoning>` and `<answer>`. A thought may mention these tags, so no others close it.
    _xml("reasoning"),
    # Sky-T1 and OpenThinker.
    (("|begin_of_thought|", "|end_of_thought|"), r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    # Magistral. Behind the name of a link, an address follows.
    (("[think]",), r"\[think\](?=[^(\[:])", r"\[/think\]"),
    # Kimi.
    (("◁think▷",), "◁think▷", "◁/think▷"),
)  # fmt: skip
"""What the tags of each kind look like: their names, an opening tag, and a closing tag. Case is ignored."""
_TAG = re.compile(
    "|".join(f"(?P<o{kind}>{opening})|(?P<c{kind}>{closing})" for kind, (_, opening, closing) in enumerate(_TABLE)),
    re.IGNORECASE | re.ASCII,
)
START = re.compile(r"[<\[◁]")
_NAMES = frozenset(name for names, *_ in _TABLE for name in names)
_BEGINNINGS = frozenset(name[:end] for name in _NAMES for end in range(len(name) + 1))
_LONGEST_TAG = 220


class Tag(NamedTuple):
    start: int
    end: int
    kind: int
    """Only closing tags of the same kind end a thought."""
    is_closing: bool
    is_empty: bool
    """Whether it opens and closes a thought, as `<think/>` does."""


def find_tag(text: str, begin: int = 0) -> Tag | None:
    """Return the first tag that begins at or behind `begin`."""
    for start in START.finditer(text, begin):  # Much faster than a search for all tags.
        if (tag := _TAG.match(text, start.start())) is not None:
            assert tag.lastgroup is not None, "each alternative is a group"
            is_closing = tag.lastgroup[0] == "c"
            is_empty = not is_closing and tag[0].endswith("/>")
            return Tag(tag.start(), tag.end(), int(tag.lastgroup[1:]), is_closing, is_empty)
    return None


def beginning_of_tag(text: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of a tag."""
    at = max(text.rfind("<"), text.rfind("["), text.rfind("◁"))
    if at < 0 or len(text) - at > _LONGEST_TAG:
        return 0
    rest = text[at:].lower()
    rest = rest.lstrip("</ \t\r\n\v\f") if rest[0] == "<" else rest.replace("/", "", 1)
    if rest in _BEGINNINGS:
        return len(text) - at
    # White space, attributes or a slash may follow the name.
    words = rest.replace("/", " ", 1).split(maxsplit=1)
    return len(text) - at if words[0] in _NAMES and ">" not in rest else 0
