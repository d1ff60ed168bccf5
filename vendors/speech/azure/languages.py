"""Azure's locales for speech, and the languages that have no spaces. Does no I/O.

The tables follow https://learn.microsoft.com/azure/ai-services/speech-service/language-support.
"""

from streams.languages import Languages, language_of

_UNSPACED = frozenset({"zh", "yue", "wuu", "ja", "th", "lo", "km", "my"})

_SHARED = (
    "af-ZA am-ET ar-EG ar-AE ar-BH ar-DZ ar-IQ ar-JO ar-KW ar-LB ar-LY ar-MA ar-OM ar-QA ar-SA ar-SY ar-TN "
    "ar-YE as-IN az-AZ bg-BG bn-IN bs-BA ca-ES cs-CZ cy-GB da-DK de-DE de-AT de-CH el-GR en-US en-AU en-CA "
    "en-GB en-HK en-IE en-IN en-KE en-NG en-NZ en-PH en-SG en-TZ en-ZA es-ES es-MX es-AR es-BO es-CL es-CO "
    "es-CR es-CU es-DO es-EC es-GQ es-GT es-HN es-NI es-PA es-PE es-PR es-PY es-SV es-US es-UY es-VE et-EE "
    "eu-ES fa-IR fi-FI fil-PH fr-FR fr-BE fr-CA fr-CH ga-IE gl-ES gu-IN he-IL hi-IN hr-HR hu-HU hy-AM id-ID "
    "is-IS it-IT ja-JP jv-ID ka-GE kk-KZ km-KH kn-IN ko-KR lo-LA lt-LT lv-LV mk-MK ml-IN mn-MN mr-IN ms-MY "
    "mt-MT my-MM nb-NO nn=nb-NO ne-NP nl-NL nl-BE or-IN pa-IN pl-PL ps-AF pt-BR pt-PT ro-RO ru-RU si-LK sk-SK "
    "sl-SI so-SO sq-AL sr-RS sv-SE sw-KE sw-TZ ta-IN te-IN th-TH tr-TR uk-UA uz-UZ vi-VN wuu-CN yue=zh-HK "
    "yue-CN zh-CN zh-TW zh-HK zu-ZA"
)
RECOGNITION = Languages.of_vendor(f"{_SHARED} ar-IL ar-PS en-GH it-CH ur-IN")
SYNTHESIS = Languages.of_vendor(
    f"{_SHARED} bn-BD iu-Cans-CA iu-Latn-CA sr-Latn-RS su-ID ta-LK ta-MY ta-SG ur-PK ur-IN"
)
ASSESSMENT = Languages.of_vendor(
    "ar-EG ar-SA ca-ES da-DK de-DE en-US en-AU en-CA en-GB en-IN es-ES es-MX fi-FI fr-FR fr-CA hi-IN it-IT "
    "ja-JP ko-KR ms-MY nb-NO nn=nb-NO nl-NL pl-PL pt-BR pt-PT ru-RU sv-SE ta-IN th-TH vi-VN yue=zh-HK zh-CN "
    "zh-TW zh-HK"
)


def word_gap(code: str) -> str:
    """Return the separator between two words: a space, or nothing in languages written without spaces."""
    return "" if language_of(code) in _UNSPACED else " "
