"""Speech markup for vendor A: a text and how to say it, safely escaped. Pure."""

import re
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from vendors.speech.azure_languages import locale_of

_NAMESPACES = 'xmlns="http://www.w3.org/2001/10/synthesis" xmlns:mstts="http://www.w3.org/2001/mstts"'
_VOICE_LOCALE = re.compile(r"[a-z]{2,3}-[A-Z][A-Za-z]+(?:-[A-Z]+)?(?=-)")
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SLOWEST, _FASTEST = 0.5, 2.0
_MANY_LANGUAGES = re.compile("Multilingual|:DragonHD")


@dataclass(frozen=True, slots=True)
class Manner:
    """How to say it. `language` is for voices that speak several; `style` and `role` for those that play."""

    voice: str
    speed: float = 1.0
    language: str | None = None
    style: str | None = None
    style_degree: float | None = None
    role: str | None = None


def ssml(text: str, manner: Manner) -> str:
    """A whole document. Characters that XML cannot hold become blanks."""
    said = escape(_clean(text)).replace("\r", "&#13;")
    speed = min(max(manner.speed, _SLOWEST), _FASTEST)
    if speed != 1.0:
        said = _element("prosody", {"rate": f"{(speed - 1) * 100:+.0f}%"}, said)
    if manner.style or manner.role:
        played = {
            "style": manner.style,
            "styledegree": None if manner.style_degree is None else f"{manner.style_degree:g}",
            "role": manner.role,
        }
        said = _element("mstts:express-as", played, said)
    own = _VOICE_LOCALE.match(manner.voice)
    wanted = locale_of(manner.language) if manner.language else None
    if wanted and _MANY_LANGUAGES.search(manner.voice):
        said = _element("lang", {"xml:lang": wanted}, said)
    document = own[0] if own else wanted or "en-US"
    voiced = _element("voice", {"name": manner.voice}, said)
    return f'<speak version="1.0" {_NAMESPACES} xml:lang={quoteattr(_clean(document))}>{voiced}</speak>'


def _element(name: str, attributes: dict[str, str | None], content: str) -> str:
    given = "".join(f" {key}={quoteattr(_clean(value))}" for key, value in attributes.items() if value is not None)
    return f"<{name}{given}>{content}</{name}>"


def _clean(text: str) -> str:
    return _NO_XML.sub(" ", text)
