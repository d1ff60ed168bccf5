"""Removes the markup within a sentence, and what nobody would read aloud. Does no I/O."""

import html
import re

from streams.spoken.formulas import find_formulas, raised
from streams.spoken.html_tags import without_tags
from streams.spoken.literals import literal, restored
from streams.spoken.powers import with_powers
from streams.spoken.words import Words

_PLAIN = re.compile(r"[\w ,.;!?'\"()’“”-]+\s*")  # noqa: RUF001
"""Sentences without markup, if they have no underscore and no address."""
MARKS = tuple(".!?:;,…。！？：；，、।؟،؛")  # noqa: RUF001 - those of other scripts
"""Marks at which a voice pauses."""
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:<[^<>\n]*>|(?:[^()\s]|\([^()]*\))*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")
_REFERENCE = re.compile(r"!?\[([^\[\]]+)\]\[[^\[\]]*\]")
_FOOTNOTE = re.compile(r"\[\^[^\]]+\]")
_REST_OF_LINK = re.compile(r"(?:!?\[([^\[\]]*))?\]\([^)\s]*\)?|!?\[(?=[^\[\]]*$)")
"""The end or the beginning of a link whose text was split into two sentences, or whose address is cut off."""
_SPEAKER = re.compile(r"(^|\n)\[([^\[\]]+)\]:")
_CITATION = re.compile(
    r"(?<=[^\s\[\](])\[[1-9]\d?\d?\]\([^()\s]*\)"
    r"|(?<=[^\s\[\]])(?:\[[1-9]\d?\d?\])+(?!\s*=)|\s+(?:\[[1-9]\d?\d?\]){2,}|\s+\[[1-9]\d?\d?\](?=[.,;:!?]|\s*$)"
    r"|\s*(?::contentReference)?\[(?:cite|oaicite): ?[^\]]*\](?:\{[^}]*\})?|\s*【[^】†]*†[^】]*】"
)
"""Numbers of sources, as models with a web search write them."""
_URL = re.compile(
    r"<?(?<![A-Za-z0-9])(?:https?://|www\.)(?:www\.)?([\w.-]*\w)(?:[^\s<>()\[\]。，！？；、）】」』]|\([^\s()]*\))*?"  # noqa: RUF001
    r"(?=[.,;:!?*_`'\"]*(?:[\s<>)\[\]。，！？；、）】」』]|\((?![^\s()]*\))|$))>?"  # noqa: RUF001
)
_ADDRESS = re.compile(r"<(?:mailto:)?([^<>@\s]+@[^<>\s]+)>")
_BREAK = re.compile(r"(?:\s*<(?:br\s*/?|/(?:p|li|div|td|th|h\d|summary))>)+")
_LINE_BREAK = re.compile(
    r" *\\\n| {2,}\n|\n(?=[ \t]*\*\*[^*\n]+(?::\*\*|\*\*:))|\\\s*$|(?:^|(?<=\n))[ \t]*\*\*[^*\n]+\*\*\n"
)
"""Where people pause: at hard breaks, before a term that is explained, and after a title in bold."""
_NO_TEXT = re.compile(r"(?:\s|<[^<>]*>)*$")
_SUPERSCRIPT = re.compile(r"<sup>([^<]*)</sup>")
_COMMENT = re.compile(r"</[A-Za-z][^<>]*>|<!--.*?(?:-->|$)|^--.*?-->|<!$", re.DOTALL)
"""Closing tags, and comments, which may be split into two sentences at their exclamation mark."""
_STRUCK = re.compile(r"~~(?=\S).*?\S~~")
_TASK = re.compile(r"^\s*\[[ xX]\]\s+")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_CODE_TAG = re.compile(r"</?([A-Za-z][^<>]*?)\s*/?>")
_CODE_MARKUP = re.compile(r"[]\[<>&$~\\|!]+")
_ABOUT = re.compile(r"(?<![\w~])~(?=[\d$€£¥])")
_CLOSING_HASHES = re.compile(r"\s#{1,6}\s*$")
_STARS = re.compile(r"(?:[⭐★]\ufe0f?)+([☆\ufe0f]*)")
_STAR = re.compile("[⭐★]")
_YES = re.compile(r"[✅✔✓☑]\ufe0f?")
_NO = re.compile(r"[❌✗✘✖☒]\ufe0f?")
_KEYCAP = re.compile(r"^(\W*\d)\ufe0f?\u20e3(?=[*_]*\s)")
_ALERT = re.compile(r"^(\s*)\[!([A-Za-z]+)\](?=\s)")
"""The kind of a block quote on GitHub."""
_CUT_EMPHASIS = re.compile(r"^(?:[*_]{1,3}|~~)(?=\s)")
"""The end of emphasis whose text ended the sentence before."""
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])(?:[*_`]|~~){1,3}(?=\S)|(?<=\S)(?:[*_`]|~~){1,3}(?![A-Za-z0-9])")
"""Emphasis marks at the edge of a word. Marks within a word stay: `2*3`, `first_name`."""
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_PICTURE = "\U0001f000-\U0001faff\u2600-\u266c\u2670-\u27bf\u2b50-\u2b55\u231a-\u23ff"
PICTURES = f"[{_PICTURE}\ufe0f\u20e3][{_PICTURE}\ufe0f\u20e3\u200d\U000e0020-\U000e007f]*"
"""Emoji and dingbats, which voices read by their names. The signs of music are none: `F♯`.

A joiner (U+200D) belongs to an emoji only after one, because it shapes letters in Sinhala, Hindi and Persian.
"""
_RANKS = tuple("0123456789AKQJT")
_SUITS = "♠♥♦♣"
_PICTURES = re.compile(rf"\s+{PICTURES}(?=[.,;:!?])|{PICTURES}")
_ARROW = re.compile(r"\s*[\u2190-\u21ff\u27f5-\u27ff]\s*")
_CELL_LIMIT = 1000
"""The limit of a sentence, beyond which patterns may take long."""
_CELL = re.compile(r"\s\|\s")
_QUOTE = re.compile(r"(^|\n)[ \t]*(?:>[ \t]*)+")
_SOUND = re.compile(r"[^\W_]")
_GAP = re.compile(r"[^\S\n]{3,}(?!\n)")
"""White space without meaning, on which other patterns would take long."""
_LONG = 200


def spoken_inline(text: str, words: Words) -> str:
    """Return what is spoken of a sentence. It is empty if nothing is, and begins and ends without white space."""
    if _PLAIN.fullmatch(text) and "_" not in text and "www." not in text:
        text = " ".join(text.split())
    else:
        if not _SOUND.search(text):
            return ""
        if len(text) > _LONG:
            text = _GAP.sub(" ", text)
        text = restored(" ".join(_without_markup(text, words).split()))
    return text if _SOUND.search(text) else ""


def spoken_row(cells: str, words: Words) -> str:
    """Return what is spoken of a row of a table."""
    columns = [
        cell[at : at + _CELL_LIMIT]
        for cell in cells.replace(r"\|", literal("|")).split("|")
        for at in range(0, len(cell), _CELL_LIMIT)
    ]
    text = ""
    for cell in columns:
        if spoken := _spoken_cell(cell.strip(), words):
            text += (_pause(text[-_CELL_LIMIT:]) if text else "") + spoken
    return text if _SOUND.search(text) else ""


def _spoken_cell(cell: str, words: Words) -> str:
    if _YES.fullmatch(cell):
        return words.yes
    if _NO.fullmatch(cell):
        return words.no
    if stars := _STARS.fullmatch(cell):
        full, empty = len(_STAR.findall(cell)), stars[1].count("☆")
        return f"{full}/{full + empty}" if empty else f"{full}"
    code = _CODE.fullmatch(cell)  # An operator, such as `==`.
    return spoken_inline(cell, words) or (restored(code[2].strip()) if code else "")


def _without_markup(text: str, words: Words) -> str:
    text = _ALERT.sub(lambda alert: f"{alert[1]}{alert[2].capitalize()}: ", _QUOTE.sub(r"\1", text))
    if "`" in text:
        text = _CODE.sub(_code, text)
    if "$" in text or "\\" in text:
        text = _with_formulas(text)
    if "\n" in text or "\\" in text:
        text = _LINE_BREAK.sub(_line_break, text)
    text = _ESCAPE.sub(lambda escape: literal(escape[1]), text)
    text = _without_links(_TASK.sub("", text))
    if "#" in text:
        text = _CLOSING_HASHES.sub("", text)
    if "<" in text or "--" in text:
        text = _SUPERSCRIPT.sub(lambda power: raised(power[1]), _BREAK.sub(_break, text))
        text = _COMMENT.sub("", without_tags(text))
    if "~" in text:
        text = _STRUCK.sub("", _ABOUT.sub(words.about, text)).replace(words.about * 2, words.about)
    if "**" in text or "__" in text:
        text = with_powers(text)
    text = html.unescape(_EMPHASIS.sub("", _CUT_EMPHASIS.sub("", text)))
    if not text.isascii():
        text = _ARROW.sub(", ", _PICTURES.sub(_picture, _KEYCAP.sub(r"\1.", text)))
    return _CELL.sub(", ", text)


def _code(span: re.Match[str]) -> str:
    """Return the text of a code span. In it, an operator or the name of a tag is no markup."""
    code = span[2].strip()
    if tag := _CODE_TAG.fullmatch(code):
        return literal(tag[1])
    if not _SOUND.search(code):
        return literal(code)
    return _CODE_MARKUP.sub(lambda marks: literal(marks[0]), code)


def _with_formulas(text: str) -> str:
    parts, at = [], 0
    for begin, end, formula in find_formulas(text):
        parts += [text[at:begin], literal(formula)]
        at = end
    return "".join([*parts, text[at:]])


def _line_break(line_break: re.Match[str]) -> str:
    title = line_break[0].rstrip("\\ \n")
    is_last = line_break.end() == len(line_break.string)
    return title + ("" if is_last else _pause(line_break.string[: line_break.start()] + title))


def _break(tag: re.Match[str]) -> str:
    is_last = _NO_TEXT.match(tag.string, tag.end())
    return " " if is_last else _pause(tag.string[: tag.start()])


def _pause(before: str) -> str:
    mark = before.rstrip(" \t*_>")[-1:]
    return " " if not mark or mark in MARKS else ", "


def _picture(pictures: re.Match[str]) -> str:
    """Keep the suit of a card: `K♥`."""
    begin, first = pictures.start(), pictures[0].lstrip()[0]
    is_suit = first in _SUITS and pictures.string[:begin].endswith(_RANKS)
    return first if is_suit else ""


def _without_links(text: str) -> str:
    """Return a text with the names of its links, and only the hosts of plain addresses."""
    if "[" in text or "]" in text or "【" in text:
        text = _CITATION.sub("", text)
        for _ in range(2):  # A picture may be in a link.
            text = _LINK.sub(r"\1", text)
        text = _REFERENCE.sub(r"\1", _FOOTNOTE.sub("", text))
        text = _SPEAKER.sub(r"\1\2:", _REST_OF_LINK.sub(r"\1", text))
    return _ADDRESS.sub(r"\1", _URL.sub(r"\1", text))
