"""Removes tags of HTML, and keeps what only looks like one: `Map<String, Integer>`, `a<b and c>d`. Does no I/O."""

import re

_WITHIN_WORDS = (
    "a|abbr|b|bdi|bdo|big|br|cite|code|del|em|font|i|img|ins|kbd|mark|q|ruby"
    "|s|samp|small|span|strong|sub|sup|tt|u|wbr"
)
_APART = (
    "address|area|article|aside|audio|base|blockquote|body|button|canvas|caption|center|col|colgroup|data|datalist|dd"
    "|details|dfn|dialog|div|dl|dt|embed|fieldset|figcaption|figure|footer|form|h[1-6]|head|header|hgroup|hr|html"
    "|iframe|input|label|legend|li|link|main|map|menu|meta|meter|nav|noscript|object|ol|optgroup|option|output|p|param"
    "|picture|pre|progress|rp|rt|script|search|section|select|source|strike|style|summary|svg|table|tbody|td|template"
    "|textarea|tfoot|th|thead|time|title|tr|track|ul|var|video"
)
_ATTRIBUTES = (
    r"(?:\s+(?:[A-Za-z_:][\w:.-]*\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'=<>`]+)"
    r"|open|controls|checked|disabled|hidden|selected|required|readonly|async|defer|loop|muted|autoplay|reversed))*"
)
_UPPER_CASE = f"{_WITHIN_WORDS}|{_APART}".upper()
_TAG = re.compile(rf"<(?:{_WITHIN_WORDS}|(?<!\w<)(?:{_APART}|{_UPPER_CASE})){_ATTRIBUTES}\s*/?>")
"""Types such as `Set<object>` follow a word, which of the tags only those of characters within a line do."""
_RAW = re.compile(r"<(script|style)(?:\s[^<>]*)?>.*?</\1>", re.IGNORECASE | re.DOTALL)
_TOKEN = re.compile(r"<[|｜][\w▁-]{1,40}[|｜]>")  # noqa: RUF001
"""A special token that a server has failed to remove, such as `<|im_end|>`."""
_CLOSING = re.compile(r"</([A-Za-z][\w:.-]*)\s*>")
_OTHER = re.compile(r"<([A-Za-z][\w:.-]*)>")
_AT_LINE_START = re.compile(r"(?m)^[ \t]*<[A-Za-z][\w:.-]*>(?=[ \t]*\n|\w)")
"""A tag that is alone in its line or directly before a word. Behind a name to be filled in, there is a space."""


def without_tags(text: str) -> str:
    """Return a text without opening tags: those of HTML, and others that are closed or begin a line."""
    if "<" not in text:
        return text
    text = _TAG.sub("", _TOKEN.sub("", _RAW.sub("", text)))
    if closed := set(_CLOSING.findall(text)):
        text = _OTHER.sub(lambda tag: "" if tag[1] in closed else tag[0], text)
    return _AT_LINE_START.sub("", text)
