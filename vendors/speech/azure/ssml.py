"""Builds SSML for vendor A from a text and speaking options. Does no I/O."""

import re
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

_NAMESPACES = 'xmlns="http://www.w3.org/2001/10/synthesis" xmlns:mstts="http://www.w3.org/2001/mstts"'
_VOICE_LOCALE = re.compile(r"[a-z]{2,3}-[A-Z][A-Za-z]+(?:-[A-Z]+)?(?=-)")
_INVALID_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MIN_SPEED, _MAX_SPEED = 0.5, 2.0
_MULTILINGUAL = re.compile("Multilingual|:DragonHD")


@dataclass(frozen=True, slots=True)
class SpeakingOptions:
    """Speaking options.

    `language` is a locale for a voice that `takes_language`. `style` and `role` apply to voices that support them.
    """

    voice: str
    speed: float = 1.0
    language: str | None = None
    style: str | None = None
    style_degree: float | None = None
    role: str | None = None


def ssml(text: str, options: SpeakingOptions) -> str:
    """Return an SSML document. Characters that are not allowed in XML are replaced by spaces."""
    content = escape(_clean(text)).replace("\r", "&#13;")
    speed = min(max(options.speed, _MIN_SPEED), _MAX_SPEED)
    if speed != 1.0:
        content = _element("prosody", {"rate": f"{(speed - 1) * 100:+.0f}%"}, content)
    if options.style or options.role:
        attributes = {
            "style": options.style,
            "styledegree": None if options.style_degree is None else f"{options.style_degree:g}",
            "role": options.role,
        }
        content = _element("mstts:express-as", attributes, content)
    voice_locale = _VOICE_LOCALE.match(options.voice)
    if options.language and _MULTILINGUAL.search(options.voice):
        content = _element("lang", {"xml:lang": options.language}, content)
    document_locale = voice_locale[0] if voice_locale else options.language or "en-US"
    voice = _element("voice", {"name": options.voice}, content)
    return f'<speak version="1.0" {_NAMESPACES} xml:lang={quoteattr(_clean(document_locale))}>{voice}</speak>'


def takes_language(voice: str) -> bool:
    """Return whether a voice is multilingual, or has no locale of its own."""
    return bool(_MULTILINGUAL.search(voice)) or not _VOICE_LOCALE.match(voice)


def _element(name: str, attributes: dict[str, str | None], content: str) -> str:
    attribute_text = "".join(
        f" {key}={quoteattr(_clean(value))}" for key, value in attributes.items() if value is not None
    )
    return f"<{name}{attribute_text}>{content}</{name}>"


def _clean(text: str) -> str:
    return _INVALID_XML.sub(" ", text)
