"""The markup of spoken text for vendor A."""

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vendors.speech.azure.ssml import SpeakingOptions, ssml

SPEAK, MSTTS = "{http://www.w3.org/2001/10/synthesis}", "{http://www.w3.org/2001/mstts}"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def parsed(markup: str) -> ET.Element:
    return ET.fromstring(markup)  # noqa: S314 - our own


@given(st.text())
@example('</voice><voice name="x">&amp; ]]> <!-- \'')
@example("a\r\nb\x00\x0b\ud800\ufffe")
def test_the_text_of_the_markup_is_spoken(text: str):
    spoken = "".join(parsed(ssml(text, SpeakingOptions("en-US-JennyNeural"))).itertext())

    assert spoken == re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", " ", text)


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1))
@example('x" onload="y')
def test_voice_and_style_cannot_leave_their_attributes(name: str):
    root = parsed(ssml("hi", SpeakingOptions(name, style=name, role=name, language="de-AT")))

    (voice,) = root
    assert voice.get("name") == name
    played = next(root.iter(f"{MSTTS}express-as"))
    assert (played.get("style"), played.get("role")) == (name, name)


def test_invalid_xml_characters_become_spaces():
    assert parsed(ssml("hi", SpeakingOptions("a\0b", style="c\x0bd")))[0].get("name") == "a b"


def test_speaking_options_become_markup():
    options = SpeakingOptions(
        "en-US-AvaMultilingualNeural", speed=1.25, language="de-DE", style="cheerful", style_degree=1.5, role="Girl"
    )
    root = parsed(ssml("Grüß Gott", options))

    assert [element.tag.rpartition("}")[2] for element in root.iter()] == [
        "speak",
        "voice",
        "lang",
        "express-as",
        "prosody",
    ]
    assert root.get(XML_LANG) == "en-US"
    assert next(root.iter(f"{SPEAK}lang")).get(XML_LANG) == "de-DE"
    assert next(root.iter(f"{MSTTS}express-as")).attrib == {
        "style": "cheerful",
        "styledegree": "1.5",
        "role": "Girl",
    }
    assert next(root.iter(f"{SPEAK}prosody")).get("rate") == "+25%"


@pytest.mark.parametrize(
    ("speed", "rate"), [(0.25, "-50%"), (0.5, "-50%"), (0.9, "-10%"), (2, "+100%"), (4, "+100%")]
)
def test_the_speed_is_limited_to_the_range_of_the_vendor(speed: float, rate: str):
    assert f'<prosody rate="{rate}">hi</prosody>' in ssml("hi", SpeakingOptions("en-US-JennyNeural", speed=speed))


@pytest.mark.parametrize(
    ("voice", "language", "document"),
    [
        ("de-DE-KatjaNeural", "en", "de-DE"),
        ("zh-CN-liaoning-XiaobeiNeural", None, "zh-CN"),
        ("fil-PH-AngeloNeural", None, "fil-PH"),
        ("my-own-voice", "de-AT", "de-AT"),
        ("my-own-voice", None, "en-US"),
    ],
)
def test_the_markup_has_the_language_of_the_voice(voice: str, language: str | None, document: str):
    root = parsed(ssml("hi", SpeakingOptions(voice, language=language)))

    assert root.get(XML_LANG) == document
    assert list(root.iter(f"{SPEAK}lang")) == []  # Voices with one language do not support it.
