r"""Tell URLs that run a script, show a document or write to an address from texts such as `JavaScript: a course`.

These URLs have no host. JavaScript needs neither parentheses nor `=` to open a page: if the result of a
`javascript:` URL is a string, it becomes the document, and strings have escapes (`\x3c`). So texts are recognized,
and everything else is refused.
"""

import re
from unicodedata import category, normalize

_SCRIPTS = frozenset({"javascript:", "livescript:", "vbscript:", "view-source:", "blob:", "filesystem:"})
_MARKS = frozenset(".,!?:;'\"&-%`")
"""The only ASCII characters other than letters, digits and blanks in texts behind the name of a script."""
_ESCAPE = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
_STRING = re.compile(r"([\"'`]).*?\1")
_WORD = r"[^\W\d]\w*+"
_PAIR = re.compile(rf"(?<!\w)(?=({_WORD}) ++({_WORD}))")
"""Two words with only blanks between them. If none is an operator, this is not JavaScript."""
_OPERATOR = re.compile(
    "accessor|as|async|await|break|case|class|const|continue|debugger|default|delete|do|else|enum|export|extends|"
    "finally|for|from|function|get|if|implements|import|in|instanceof|interface|let|new|of|package|private|"
    "protected|public|return|set|static|switch|throw|try|typeof|using|var|void|while|with|yield"
)
"""The words of JavaScript that may stand beside another word."""
_LETTER = r"(?:[^\W\d]|[^\x00-\x7f])"
_READING = re.compile(
    rf"(?:(?<!\w){_WORD}|[^\x00-\x7f])\s*+(?:\?\s*+)?\.\s*+{_LETTER}|"  # A member, such as `document.title`.
    r"(?:\w|[^\x00-\x7f])\s*+`|"  # A call, such as "open`…`".
    r"(?<!\w)(?:name|status|origin)(?!\w)"  # What the opener of a page chooses, and the other strings of `window`.
)
"""JavaScript that calls something, or whose result may be a string that another chose."""
_DOCUMENT = re.compile(
    r"\s*[,;]|"
    r"[^,]*(base64|/[^,/]*(html|svg|xml)|\b(application|audio|font|image|message|model|multipart|text|video)\s*/(?!\s*plain\b))|"
    r"[^,]*,.*([<\\]|%[0-9a-f]{2}|&(lt|\#))",
    re.IGNORECASE | re.DOTALL,
)
_ADDRESS = re.compile(r"\S|.*(@|%40)", re.IGNORECASE | re.DOTALL)


def acts(scheme: str, rest: str) -> bool:
    """Return whether a link does something other than opening a host. `rest` is what follows its `scheme`.

    `rest` does not contain the tabs and line breaks that browsers remove.
    """
    match scheme:
        case "data:":  # Without a comma, the URL is invalid.
            return "," in rest and _DOCUMENT.match(rest) is not None
        case "mailto:":
            return _ADDRESS.match(rest) is not None
        case "vbscript:":  # It calls procedures without parentheses.
            return not rest[:1].isspace() or any(mark in rest for mark in "\"'`") or _may_be_script(rest)
    return scheme in _SCRIPTS and _may_be_script(rest)


def _may_be_script(rest: str) -> bool:
    if not all(map(_is_in_texts, rest + normalize("NFKC", rest))) or _ESCAPE.search(rest):
        return True
    code = _STRING.sub(r"\1", rest)
    return _READING.search(code) is not None and not _has_neighbours(code)


def _has_neighbours(code: str) -> bool:
    """Return whether two words stand beside each other where JavaScript does not allow it."""
    return any(not any(map(_OPERATOR.fullmatch, pair.groups())) for pair in _PAIR.finditer(code))


def _is_in_texts(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char == " " or char in _MARKS
    return category(char) not in {"Cc", "Zl", "Zp", "Cs"} and char != "\ufeff"  # The last one is a blank too.
