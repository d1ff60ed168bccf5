"""Converts language codes to vendor A's locales, and knows which languages have no spaces. Does no I/O."""

_REGIONS = {
    "af": "ZA", "am": "ET", "ar": "EG", "bn": "IN", "bs": "BA", "ca": "ES", "cs": "CZ", "cy": "GB", "da": "DK",
    "el": "GR", "en": "US", "et": "EE", "eu": "ES", "fa": "IR", "fil": "PH", "ga": "IE", "gl": "ES", "gu": "IN",
    "he": "IL", "hi": "IN", "hy": "AM", "ja": "JP", "ka": "GE", "kk": "KZ", "km": "KH", "kn": "IN", "ko": "KR",
    "lo": "LA", "ml": "IN", "mr": "IN", "ms": "MY", "my": "MM", "nb": "NO", "ne": "NP", "pa": "IN",
    "ps": "AF", "pt": "BR", "si": "LK", "sl": "SI", "sq": "AL", "sr": "RS", "sv": "SE", "sw": "KE", "ta": "IN",
    "te": "IN", "uk": "UA", "ur": "PK", "vi": "VN", "yue": "CN", "zh": "CN", "zu": "ZA",
}  # fmt: skip
"""The default region of languages whose code differs from it (that of `de` is `DE`)."""

_UNSPACED = frozenset({"zh", "yue", "wuu", "ja", "th", "lo", "km", "my"})


def locale_of(code: str) -> str:
    """Return the locale of a language code: `en` and `en_us` become `en-US`. The vendor requires a region."""
    language, *rest = code.replace("_", "-").split("-")
    language = {"no": "nb"}.get(language.lower(), language.lower())
    if not rest:
        return f"{language}-{_REGIONS.get(language, language.upper())}"
    return "-".join([language, *(part.upper() if len(part) == 2 else part for part in rest)])


def word_gap(code: str) -> str:
    """Return the separator between two words: a space, or nothing in languages written without spaces."""
    language = code.replace("_", "-").partition("-")[0].lower()
    return "" if language in _UNSPACED else " "
