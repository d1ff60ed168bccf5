"""Find URLs in the texts that clients put into emails, as browsers and mail programs read them.

A text can become the target of a link, or be shown. Browsers read a target by the URL standard of the WHATWG
(https://url.spec.whatwg.org), which `ada_url` implements. Mail programs make links of URLs in a text, of names that
begin with `www.`, of names in known top-level domains, and of IP addresses. They differ in where a link ends, so
each possible end is read.
"""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from unicodedata import normalize

from ada_url import URL, idna_to_ascii
from publicsuffixlist import PSLFILE

from app.mail_schemes import acts

_PORTS = {"http:": "80", "https:": "443"}
_SPECIAL = {*_PORTS, "ftp:", "ws:", "wss:", "file:"}
"""The schemes for which browsers read backslashes as slashes, and any number of them."""
_NO_HOST = "base.invalid"
_BASES = (None, f"http://{_NO_HOST}/", f"https://{_NO_HOST}/")
"""The pages to which the target of a link may be relative."""
_REMOVED = re.compile(r"[\t\r\n]")
"""Browsers remove these characters from a target."""
_TRIMMED = "".join(map(chr, range(0x21)))
"""Browsers remove these characters from both ends of a target."""
_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_BLANK, _BLANK_LABEL = re.compile(r"\s"), "0blank0"
_LINK = re.compile(
    r"(?<![a-z0-9+.-])(?:(?P<scheme>[a-z0-9+.-]*[a-z0-9+-]:)[/\\]+|(?:www|ftp)\d*\.(?=\w))", re.IGNORECASE
)
"""The beginning of a link: a scheme with slashes, or a name to which mail programs add a scheme."""
_CERTAIN = re.compile(r"[\w.:-]*(?a:[\w.~:/?#@!$&*+,;=%-]*)")
"""The part of a link after its beginning that all programs read as part of it, if its host is known."""
_TRAILING = ".,:;!?'\"*_~|)]}>»”’…"  # noqa: RUF001 - quotation marks
"""Characters that end sentences and quotations. They are not part of a link before them."""
_DELIMITER = re.compile(r"[<>\"]")
_HEAD = re.compile(r"(?:[a-z0-9+.-]*:[/\\]+)?[^\s/?#]*", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?:[^:/\\]*:)?[/\\]*([^/\\?#]*)")
_PLAIN_AUTHORITY = re.compile(r"[\w.-]+(:\d*)?")
_SHARE = re.compile(r"(?<![\w\\])\\\\[\w.-]+\\")
_NAME = re.compile(r"[\w@.．。｡-]+")  # noqa: RUF001 - browsers read these dots as full stops
_DOT = re.compile(r"[.．]")  # noqa: RUF001
_ANY_DOT = re.compile(r"[.．。｡]")  # noqa: RUF001
_PORT = re.compile(r":\d{1,5}(?!\d)")
_ADDRESS = re.compile(r"[^@]+@[\w.-]*\w")
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = re.compile(rf"(?:{_OCTET}\.){{3}}{_OCTET}", re.ASCII)


def _top_level_domains() -> frozenset[str]:
    """Return all top-level domains, and `example`, which stands for one in documentation (RFC 2606)."""
    icann = Path(PSLFILE).read_text(encoding="utf-8").partition("===END ICANN DOMAINS===")[0]
    rules = [line.strip() for line in icann.splitlines() if line.strip() and not line.startswith("//")]
    domains = {rule.rpartition(".")[2].removeprefix("!") for rule in rules}
    return frozenset({"example", *map(_ascii, domains)})


def _ascii(label: str) -> str:
    return idna_to_ascii(label).decode()


_TOP_LEVEL = _top_level_domains()


def leads_elsewhere(text: str, hosts: Collection[str]) -> bool:
    """Return whether a text, shown or as the target of a link, leads to a host that is not in `hosts`.

    `hosts` are in lower case and in ASCII, with or without a port. A URL also leads elsewhere if it does not show
    its host as it is, for example behind a user name.
    """
    return _opens_elsewhere(text, hosts) or not all(_is_allowed_link(link, hosts) for link in _links(text))


def host_of(url: str) -> str:
    """Return the host of a valid URL, and its port if it is not the default one of the scheme."""
    return URL(url).host


def without_links(name: str) -> str:
    """Return a name with blanks for the characters between its parts of which mail programs make links."""
    pairs = zip(name, [*name[1:], " "], strict=True)
    return "".join(" " if _joins(char) and not after.isspace() else char for char, after in pairs)


def shown_address(address: str) -> str:
    """Return an email address as an email shows it. Whoever enters an address may choose what follows its `+`."""
    if not leads_elsewhere(address, ()):
        return address
    local, _, domain = address.rpartition("@")
    return f"{without_links(local)}@{domain}"


def _joins(char: str) -> bool:
    return char in "。｡⁄∕∶" or any(part in "./\\@:" for part in normalize("NFKC", char))  # noqa: RUF001


def _opens_elsewhere(text: str, hosts: Collection[str]) -> bool:
    """Return whether a link with the target `text` opens another host, or acts without one."""
    target = _REMOVED.sub("", text).strip(_TRIMMED)
    scheme, _, rest = target.partition(":")
    if acts(f"{scheme.lower()}:", rest):
        return True
    for url in (_read(target, base) or _read_tolerantly(target, base) for base in _BASES):
        if url is None or url.hostname == _NO_HOST:
            continue
        if url.hostname and (url.protocol in _SPECIAL or target == text) and not _is_allowed(url, target, hosts):
            return True  # Otherwise, the scheme begins in the line before.
    return False


def _read(target: str, base: str | None = None) -> URL | None:
    try:
        return URL(target, base)
    except ValueError:
        return None


def _read_tolerantly(target: str, base: str | None) -> URL | None:
    """Read a URL that is invalid by the standard, but not for Chromium.

    Chromium keeps blanks in hosts, and ignores invisible characters beside IP addresses. Such a host exists only if
    it is an IP address, or ends with a top-level domain.
    """
    url = _read(_BLANK.sub(_BLANK_LABEL, _INVISIBLE.sub("", target)), base)
    if url is None or url.protocol not in _SPECIAL:
        return None
    return url if url.hostname.startswith("[") or url.hostname.rpartition(".")[2] in _TOP_LEVEL else None


def _is_allowed_link(link: str, hosts: Collection[str]) -> bool:
    url = _read(link)
    return url is not None and (not url.hostname or _is_allowed(url, link, hosts))


def _is_allowed(url: URL, target: str, hosts: Collection[str]) -> bool:
    """Return whether a URL leads to a host in `hosts`, and `target` shows that."""
    port = url.port or _PORTS.get(url.protocol)
    found = _AUTHORITY.match(target)
    if port is None or found is None or not _PLAIN_AUTHORITY.fullmatch(found[1]):
        return False
    host = url.hostname.removesuffix(".")
    return f"{host}:{port}" in hosts or (not url.port and host in hosts)


def _links(text: str) -> Iterator[str]:
    """Yield the URLs of which mail programs make links, each with every end that it may have."""
    for share in _SHARE.finditer(text):
        yield f"file:{share[0]}"
    position = 0
    for found in _LINK.finditer(text):
        start, is_inside = found.start(), found.start() < position
        if found["scheme"] and (url := _read(f"{found[0]}x")) and not url.hostname:
            continue  # Such as `note:/`. The names behind it are read as in any other text.
        if is_inside and not found["scheme"]:
            continue
        if not is_inside:
            yield from _names(text, position, start)
        yield from _ends(text, start, scheme=found["scheme"] or "")
        certain = _CERTAIN.match(text, found.end())
        position = max(position, certain.end() if certain else found.end())
    yield from _names(text, position, len(text))


def _ends(text: str, start: int, *, scheme: str) -> Iterator[str]:
    """Yield a link up to its host, as programs read it that end it at a blank, or at a delimiter."""
    found = _HEAD.match(text, start)
    assert found, "the expression matches an empty text too"
    whole, prefix = found[0].lstrip("0123456789+.-"), "" if scheme else "http://"
    short = _DELIMITER.split(whole, maxsplit=1)[0]
    is_end = not text[found.end() : found.end() + 1].strip()
    if is_end or short != whole:
        short = short.rstrip(_TRAILING)
    if is_end:
        whole = whole.rstrip(_TRAILING)
    if short.removeprefix(scheme.lstrip("0123456789+.-")).strip("/\\"):  # Something follows the slashes.
        yield prefix + short
    if whole != short and _read(prefix + whole) is not None:
        yield prefix + whole


def _names(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the URLs of names in known top-level domains, and of IP addresses, between two positions of a text."""
    for found in _NAME.finditer(text, start, end):
        name = found[0].strip("._-")
        if _ADDRESS.fullmatch(name):
            continue
        name = name.partition("@")[0]
        port = _PORT.match(text, found.end())
        if _IPV4.fullmatch(name):
            yield f"http://{name}{port[0] if port else ''}"
        dot = _ANY_DOT if text[found.end() : found.end() + 1] in {"/", ":"} else _DOT
        for part in re.split(rf"{dot.pattern}{{2,}}", name):
            yield from _domain(dot.split(part), port[0] if port else "")


def _domain(labels: list[str], port: str) -> Iterator[str]:
    """Yield the URL of the longest name in a top-level domain with which `labels` begin."""
    for index in range(len(labels) - 1, 0, -1):
        label = labels[index].strip("_").lower()
        for last in (label, label.partition("-")[0]):
            if last in _TOP_LEVEL or (not last.isascii() and _ascii(last) in _TOP_LEVEL):
                yield f"http://{'.'.join([*labels[:index], last])}{port if index == len(labels) - 1 else ''}"
                return
