"""Tags of clients in canonical form, and their lookup on the lists of configs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.languages import Languages, language_of, listed_languages, parse_tag
from streams.spoken.splitting import Sentences
from tests.language_tags import WELL_FORMED


@pytest.mark.parametrize(
    ("code", "canonical"),
    [
        ("zh-Hans-CN", "zh-Hans-CN"),
        ("CMN-hant-tw", "zh-Hant-TW"),
        ("zh-yue-HK", "yue-HK"),
        ("zh-min-nan", "nan"),
        ("zh_TW_#Hant", "zh-Hant-TW"),
        ("sr__#Latn", "sr-Latn"),
        ("sh-RS", "sr-Latn-RS"),
        ("en_US@calendar=gregorian", "en-US"),
        ("en-US-u-fw-mon-mu-celsius", "en-US"),
        ("de-1996-x-twain", "de"),
        ("iw-IL", "he-IL"),
        ("in", "id"),
        ("tl-PH", "fil-PH"),
        ("deu-UK", "de-GB"),
        ("en-GB-oed", "en-GB"),
        ("en_US_#u-fw-mon-mu-celsius", "en-US"),
        ("zh_CN_#Hans_u-fw-mon", "zh-Hans-CN"),
        ("en__#u-nu-latn", "en"),
        ("th_TH_TH_#u-nu-thai", "th-TH"),
        ("ja_JP_JP_#u-ca-japanese", "ja-JP"),
        ("ja_JP_JP", "ja-JP"),
        ("no_NO_NY", "nn-NO"),
        ("en-USA", "en-US"),
        ("eng_GBR", "en-GB"),
        ("zh-CHN", "zh-CN"),
        ("sr-Latn-RS-x-srb", "sr-Latn-RS"),
        ("en-xyz", "en"),
        ("zh-Hans-CHN", "zh-Hans-CN"),
        ("zh-mnp", "mnp"),
        ("zh-CHS", "zh-Hans"),
        ("zh-CHT", "zh-Hant"),
        ("mul", ""),
        ("und-Latn", ""),
        ("x-whatever", ""),
        ("i-default", ""),
    ],
)
def test_a_language_has_one_canonical_tag(code: str, canonical: str):
    assert str(parse_tag(code)) == canonical


@pytest.mark.parametrize(
    "code",
    [
        "",
        "a",
        "english",
        "Hant-TW",
        "en-",
        "-en",
        "en--us",
        "en us",
        "en-US-x",
        "en-a",
        "en-US-GB",
        "en-Latn-xyz",
        "zh@#",
        "中文",
        "\u212ao",
    ],
)
def test_a_malformed_tag_is_no_language(code: str):
    with pytest.raises(ValueError, match=r"^must be a language code such as en-US$"):
        parse_tag(code)
    assert language_of(code) == ""


@pytest.mark.parametrize(
    ("listed", "code", "found"),
    [
        (["zh"], "zh-Hans-CN", "zh"),
        (["zh-TW"], "zh-Hant-TW", "zh-TW"),
        (["zh-TW"], "zh-Hans-TW", None),
        (["zh-TW"], "zh-CN", None),
        (["zh-Hant"], "zh-HK", "zh-Hant"),
        (["zh-CN"], "zh-Hant", None),
        (["zh"], "yue-Hant-HK", None),
        (["pa"], "pa-Arab-PK", "pa"),
        (["pa-IN"], "pa-Arab-PK", None),
        (["pa-IN"], "pa-Arab-IN", None),
        (["pa-IN"], "pa-Arab", None),
        (["ks-IN"], "ks-Deva", None),
        (["sr-RS"], "sr-Latn-RS", None),
        (["qaa-IN"], "qaa-Latn-IN", "qaa-IN"),
        (["he"], "iw-IL", "he"),
        (["no"], "nb-NO", "no"),
        (["en", "en-GB"], "en_gb", "en-GB"),
        (["en-US"], "en-Latn-US", "en-US"),
        (["en-US"], "en-GB", None),
        (["en-GB", "en-US"], "en", "en-GB"),
        (["en-GB"], "en-AU", None),
        (["es-419"], "es-MX", "es-419"),
        (["es-419"], "es-ES", None),
        (["english", "en"], "en-US", "en"),
        (["en"], "mul", None),
    ],
)
def test_a_listed_tag_includes_those_that_are_more_specific(listed: list[str], code: str, found: str | None):
    assert listed_languages(tuple(listed)).find(code) == found


def test_a_vendor_offers_the_nearest_region_and_the_first_code_of_a_language():
    offered = Languages.of_vendor("es-ES es-MX en-US en-GB pt-BR pt-PT cmn-CN cmn-TW zh-HK=yue-HK")
    found = {
        code: offered.find(code) for code in ("es-AR", "es", "en-NZ", "en-CA", "pt-AO", "zh-MO", "zh-Hant", "fr")
    }
    assert found == {
        "es-AR": "es-MX", "es": "es-ES", "en-NZ": "en-GB", "en-CA": "en-US", "pt-AO": "pt-PT", "zh-MO": "yue-HK",
        "zh-Hant": "cmn-TW", "fr": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("pa-Guru", "pa-Guru-IN"),
        ("pa-Arab-PK", None),
        ("zh-Hant-CN", None),
        ("sr-Latn-RS", "sr-RS"),
        ("sr-ME", "sr-RS"),
        ("uz-Cyrl-UZ", None),
        ("az-Cyrl", "az-Cyrl-AZ"),
        ("az-IR", None),
        ("az", "az-AZ"),
        ("qaa-Cyrl-ZA", None),
        ("qaa-ZA", "qaa-Latn-ZA"),
    ],
)
def test_a_vendor_does_not_offer_a_language_in_another_script(code: str, found: str | None):
    offered = Languages.of_vendor("pa-Guru-IN zh-CN sr-RS uz-UZ az-AZ az-Cyrl-AZ qaa-Latn-ZA")
    assert offered.find(code) == found


@given(WELL_FORMED)
def test_every_well_formed_tag_is_parsed_and_its_canonical_form_stays(code: str):
    tag = parse_tag(code)
    assert not tag.language or parse_tag(str(tag)) == tag
    assert Languages.of_vendor("en-US zh-TW es-419").find(code) in {None, "en-US", "zh-TW", "es-419"}
    assert listed_languages((code,)).find(code) == code


@given(st.text(max_size=20))
def test_sentences_are_split_in_any_language(code: str):
    sentences = Sentences(code)
    assert "".join([*sentences.feed("One. Two."), *sentences.finish()]) == "One. Two."
