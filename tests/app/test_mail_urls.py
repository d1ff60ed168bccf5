"""URLs in the variables of emails are read as browsers and mail programs read them."""

import re

import pytest
from ada_url import URL
from hypothesis import given, settings
from hypothesis import strategies as st

from app.mail_urls import leads_elsewhere, without_links
from tests.app.mail.written_urls import FOREIGN, HOST, PLAIN, opens_elsewhere

HOSTS = [HOST]
NOISE = st.sampled_from(["", "\t", "\n", "\r", "\r\n\t"])
"""What browsers remove from URLs."""
IGNORED = st.sampled_from(["", "\u00ad", "\u200b", "\u2060", "\ufe0f"])
"""What browsers remove from hosts."""
FOLDED = {
    "e": "eE\uff45\u24d4", "v": "vV\uff56\u24e5", "i": "iI\uff49\u24d8", "l": "lL\uff4c\u24db",
    ".": ".\u3002\uff0e\uff61", "x": "xX\uff58", "a": "a\u24d0", "m": "m\uff4d", "p": "pP",
}  # fmt: skip
"""Characters that browsers read as the same one in a host."""


@st.composite
def foreign_urls(draw: st.DrawFn) -> str:
    """Spellings of `https://…evil.example…`, each of which browsers open at that host."""
    spelled = [draw(st.sampled_from(FOLDED[char])) for char in "evil.example"]
    if draw(st.booleans()):
        spelled = [f"%{byte:02x}" for byte in b"evil.example"]
    host = "".join(char + draw(IGNORED) for char in spelled)
    scheme = draw(st.sampled_from(["https:", "HTTPS:", "http:", "hTTps:"]))
    slashes = draw(st.text("/\\", min_size=0, max_size=4))
    user = draw(
        st.sampled_from(
            ["", "", "good.example@", 'good.example"@', "good.example:443@", "a b@", "good.example%2f@"]
        )
    )
    end = draw(
        st.sampled_from(["", "/", "/@good.example", "?good.example", "#good.example", ":443/", ":8443", "\\x"])
    )
    before = draw(st.sampled_from(["", " ", "\x01", "\t "]))
    return before + "".join(char + draw(NOISE) for char in f"{scheme}{slashes}{user}{host}{end}")


@settings(max_examples=200)
@given(url=foreign_urls())
def test_no_spelling_of_a_foreign_host_passes(url: str):
    assert leads_elsewhere(url, HOSTS)


WORDS = st.from_regex(r"[A-Za-z0-9äß你\u200d'-]{1,12}", fullmatch=True)
JOINTS = st.sampled_from(
    [" ", ": ", ", ", ". ", "? ", " / ", "/", " - ", "\n", " (", ") ", " & ", " @", "...", " \\ "]
)


@settings(max_examples=200)
@given(words=st.lists(st.tuples(WORDS, JOINTS), max_size=12))
def test_no_text_without_a_host_is_refused(words: list[tuple[str, str]]):
    text = "x" + "".join(word + joint for word, joint in words)
    assert not leads_elsewhere(text, HOSTS)


SCHEMES = [
    *(
        "data:",
        "Data:",
        "javascript:",
        "JavaScript:",
        "vbscript:",
        "livescript:",
        "blob:",
        "view-source:",
        "mailto:",
    ),
    *("tel:", "file:", "https:", "HTTP:", "ftp:", "Re:", "note:"),
]
SLASHES = ["//", "/", "\\\\", "\\"]
TEXTS = [
    *(
        "Ada",
        "the",
        "course",
        "5",
        "50%",
        "it's",
        "\u4f60\u597d",
        "Node.js",
        "report.pdf",
        "v1.2",
        "Ph.D.",
        "https://good.example/x",
    ),
    *("evil.com", "https://evil.example/", "www.evil", "ada@good.example", "203.0.113.9"),
    *(
        "\\x3c",
        "\\u003c",
        "\\74",
        "%3c",
        "&lt;",
        "<b>",
        "(1)",
        "a=b",
        "text/html,",
        "text/plain,",
        "image/svg+xml,",
    ),
    *("a+b", "$x", "`${x}`", ";base64,", "[0]"),
]
ACTING = re.compile(r"[\0- ]*(data|mailto|(?:java|vb|live)script|blob|view-source):(.*)", re.IGNORECASE | re.DOTALL)


@st.composite
def texts_with_schemes(draw: st.DrawFn) -> str:
    """Texts of words, dotted names and code, with words before a colon and slashes anywhere."""
    pieces = []
    for piece in draw(
        st.lists(st.sampled_from(SCHEMES) | st.sampled_from(SLASHES) | st.sampled_from(TEXTS), max_size=6)
    ):
        if piece[0] in "/\\" and pieces and pieces[-2] in SLASHES:
            continue  # `foreign_urls` mixes them.
        joints = ["", " ", "\n"] if piece in SCHEMES or piece in SLASHES else [" ", ", ", "\n", " - ", "; "]
        pieces += [piece, draw(st.sampled_from(joints))]
    return draw(st.sampled_from(["", "", " ", "\x01", "\t"])) + "".join(pieces)


def link_opens_elsewhere(target: str) -> bool:
    """What the standard says, for a link on no page, and on pages by HTTP and HTTPS."""
    for base in (None, "http://base.invalid/", "https://base.invalid/"):
        try:
            url = URL(target, base)
        except ValueError:
            continue
        is_special = url.protocol in {"http:", "https:", "ftp:", "file:"}
        if is_special and url.host not in {"", "base.invalid"} and (url.host != HOST or url.username):
            return True
    return False


def text_contains_link(text: str) -> bool:
    """Whether a mail program finds a link in a text of `TEXTS`, in which only these names exist."""
    known = text.replace("https://good.example/x", "good")
    return (
        re.search(r"(?i)evil|203\.0|(?:(?:http|https|ftp):[/\\]+|file:[/\\]{2}|[a-z]://)[^\s/\\,;<-]", known)
        is not None
    )


def target_acts(target: str) -> bool | None:
    """Whether a link without a host does something, or `None` if that depends on what the text means as code."""
    found = ACTING.match(re.sub(r"[\t\n]", "", target))
    if found is None:
        return False
    scheme, rest = found[1].lower(), found[2].rstrip()
    if scheme == "mailto":
        return rest[:1] not in {"", " "} or "@" in rest
    if scheme == "data":
        is_document = re.search(r"(?i)^ *[,;]|^[^,]*(text/html|svg|base64)|,.*([<\\]|%3c|&lt;)", rest) is not None
        return "," in rest and is_document
    if re.search(r"[^\w .,!?:;'\"&%`-]|%[0-9a-f]{2}", rest, re.IGNORECASE):
        return True
    return None if scheme == "vbscript" or re.search(r"\w[.'`]\w", rest) else False


@settings(max_examples=400)
@given(text=texts_with_schemes())
def test_texts_with_schemes_are_refused_if_and_only_if_they_lead_elsewhere(text: str):
    acts = target_acts(text)
    if link_opens_elsewhere(text) or text_contains_link(text) or acts:
        assert leads_elsewhere(text, HOSTS)
    elif acts is False and re.search(r"(?i)[a-z]://[,;<-]", text) is None:  # Mail programs differ about these.
        assert not leads_elsewhere(text, HOSTS)


@settings(max_examples=200)
@given(
    scheme=st.sampled_from(["http://", "https://", "HTTPS://"]),
    host=st.sampled_from([HOST, "Good.Example", "good.example."]),
    path=st.from_regex(r"(/[A-Za-z0-9._~%-]{0,8}){0,3}(\?[A-Za-z0-9=&.%-]{0,16})?(#[a-z]{0,4})?", fullmatch=True),
)
def test_urls_of_known_hosts_pass(scheme: str, host: str, path: str):
    assert not leads_elsewhere(f"{scheme}{host}{path}", HOSTS)
    assert not leads_elsewhere(f"See {scheme}{host}{path} for more", HOSTS)


@pytest.mark.parametrize(
    ("hosts", "passed"),
    [
        (["good.example:8443"], ["https://good.example:8443/", "good.example:8443/x"]),
        (["good.example:443"], ["https://good.example/", "https://good.example:443/"]),
        (["xn--strae-oqa.example"], ["https://stra\u00dfe.example/", "https://xn--strae-oqa.example/"]),
        (["127.0.0.1:8080"], ["http://127.0.0.1:8080/x", "127.0.0.1:8080"]),
        (["app.example", "www.app.example"], ["app.example www.app.example"]),
        ([], ["Hello"]),
    ],
)
def test_hosts_may_have_ports_and_names_in_other_scripts(hosts: list[str], passed: list[str]):
    assert [text for text in passed if leads_elsewhere(text, hosts)] == []
    assert leads_elsewhere("https://good.example:9443/", hosts)


def test_the_table_agrees_with_what_chromium_opens():
    assert len(FOREIGN) >= 60
    assert [row for row in PLAIN if opens_elsewhere(row.opened)] == []
    assert [row.value for row in FOREIGN if not leads_elsewhere(row.value, HOSTS)] == []
    assert [row.value for row in PLAIN if leads_elsewhere(row.value, HOSTS)] == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("evil.example/win", "evil example win"),
        ("www.evil.example", "www evil example"),
        ("https://evil.example", "https   evil example"),
        ("a@evil.example", "a evil example"),
        ("evil\uff0eexample\uff0fwin", "evil example win"),
        ("evil\u3002example", "evil example"),
        ("evil\u2024example", "evil example"),
        ("\\\\evil\\share", "  evil share"),
        ("evil.\u200bcom", "evil \u200bcom"),
        ("Dr. Ada Lovelace", "Dr. Ada Lovelace"),
        ("Ada-Eve_1", "Ada-Eve_1"),
    ],
)
def test_a_name_is_shown_without_what_links_are_made_of(name: str, shown: str):
    assert without_links(name) == shown
    assert not leads_elsewhere(without_links(name), [])
