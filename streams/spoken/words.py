"""Words for signs that voices would read by their names, in the languages of answers."""

from typing import NamedTuple

from streams.languages import language_of


class Words(NamedTuple):
    yes: str = ""
    """A check mark that fills a cell of a table."""
    no: str = ""
    about: str = "≈"
    """A tilde before a number."""


_WORDS = {
    "ar": Words("نعم", "لا", "حوالي "),
    "cs": Words("ano", "ne", "asi "),
    "da": Words("ja", "nej", "cirka "),
    "de": Words("ja", "nein", "etwa "),
    "en": Words("yes", "no", "about "),
    "es": Words("sí", "no", "unos "),
    "fi": Words("kyllä", "ei", "noin "),
    "fr": Words("oui", "non", "environ "),
    "hi": Words("हाँ", "नहीं", "लगभग "),
    "id": Words("ya", "tidak", "sekitar "),
    "it": Words("sì", "no", "circa "),
    "ja": Words("はい", "いいえ", "約"),
    "ko": Words("예", "아니요", "약 "),
    "nl": Words("ja", "nee", "ongeveer "),
    "no": Words("ja", "nei", "cirka "),
    "pl": Words("tak", "nie", "około "),
    "pt": Words("sim", "não", "cerca de "),
    "ru": Words("да", "нет", "около "),
    "sv": Words("ja", "nej", "cirka "),
    "th": Words("ใช่", "ไม่", "ประมาณ "),
    "tr": Words("evet", "hayır", "yaklaşık "),  # noqa: RUF001
    "uk": Words("так", "ні", "близько "),
    "vi": Words("có", "không", "khoảng "),
    "zh": Words("是", "否", "约"),
}


def words_of(language_code: str) -> Words:
    return _WORDS.get(language_of(language_code) or "en", Words())
