"""The language codes of the vendors of speech, and how a client's tag becomes one of them.

Each table lists the codes of one vendor as it writes them, the default of each language first. `tag=code` gives a
code to a tag under which nobody would look for it. Azure's tables are in `azure/languages.py`.
"""

from streams.languages import Languages, parse_tag


class LanguageNotOffered(ValueError):
    """A vendor does not offer the language of a request. The message follows the name of the field."""


def vendor_code(platform: str, code: str, offered: Languages, *, passes_on: bool) -> str:
    """Return the vendor's code for a tag. Raises `LanguageNotOffered`.

    `passes_on`: whether a language that the table lacks is sent as it is, because the vendor may offer it by now.
    """
    found = code_if_any(platform, code, offered, passes_on=passes_on)
    if found is None:
        raise LanguageNotOffered(f"{code} is not a single language, which {platform} requires")
    return found


def code_if_any(platform: str, code: str, offered: Languages, *, passes_on: bool) -> str | None:
    """Return the same as `vendor_code`, but `None` for a tag that names no single language, such as `mul`."""
    plain = plain_code(code)
    if plain is None:
        return None
    found = offered.find(plain) or (plain if passes_on else None)
    if found is None:
        raise LanguageNotOffered(f"{code} is not offered by {platform}")
    return found


def plain_code(code: str) -> str | None:
    """Return language, script and region in canonical form, or `None` for a tag that names no single language."""
    try:
        tag = parse_tag(code)
    except ValueError as error:
        raise LanguageNotOffered(str(error)) from None
    return str(tag) if tag.language else None


GOOGLE_RECOGNITION = Languages.of_vendor(
    "af-ZA am-ET ar-EG ar-AE ar-BH ar-DZ ar-IL ar-IQ ar-JO ar-KW ar-LB ar-MA ar-MR ar-OM ar-PS ar-QA ar-SA "
    "ar-SY ar-TN ar-YE az-AZ bg-BG bn-IN bn-BD bs-BA ca-ES cmn-Hans-CN cmn-Hant-TW zh-HK=yue-Hant-HK "
    "cmn-Hans-HK cs-CZ da-DK de-DE de-AT de-CH el-GR en-US en-AU en-CA en-GB en-GH en-HK en-IE en-IN en-KE "
    "en-NG en-NZ en-PH en-PK en-SG en-TZ en-ZA es-ES es-419 es-AR es-BO es-CL es-CO es-CR es-DO es-EC es-GT "
    "es-HN es-MX es-NI es-PA es-PE es-PR es-PY es-SV es-US es-UY es-VE et-EE eu-ES fa-IR fi-FI fil-PH fr-FR "
    "fr-BE fr-CA fr-CH gl-ES gu-IN hi-IN hr-HR hu-HU hy-AM id-ID is-IS it-IT it-CH iw-IL ja-JP jv-ID ka-GE "
    "kk-KZ km-KH kn-IN ko-KR lo-LA lt-LT lv-LV mk-MK ml-IN mn-MN mr-IN ms-MY my-MM ne-NP nl-NL nl-BE no-NO "
    "nn=no-NO pa-Guru-IN pl-PL pt-BR pt-PT ro-RO ru-RU rw-RW si-LK sk-SK sl-SI sq-AL sr-RS ss-Latn-ZA st-ZA "
    "su-ID sv-SE sw-KE sw-TZ ta-IN ta-LK ta-MY ta-SG te-IN th-TH tn-Latn-ZA tr-TR ts-ZA uk-UA ur-PK ur-IN uz-UZ "
    "ve-ZA vi-VN xh-ZA yue-Hant-HK zu-ZA"
)
"""https://cloud.google.com/speech-to-text/docs/v1/speech-to-text-supported-languages"""

GOOGLE_SYNTHESIS = Languages.of_vendor(
    "af-ZA am-ET ar-XA bg-BG bn-IN ca-ES cmn-CN cmn-TW zh-HK=yue-HK cs-CZ da-DK de-DE el-GR en-US en-AU en-GB "
    "en-IN es-ES es-US et-EE eu-ES fi-FI fil-PH fr-FR fr-CA gl-ES gu-IN he-IL hi-IN hr-HR hu-HU id-ID is-IS "
    "it-IT ja-JP kn-IN ko-KR lt-LT lv-LV ml-IN mr-IN ms-MY nb-NO nn=nb-NO nl-NL nl-BE pa-IN pl-PL pt-BR pt-PT "
    "ro-RO ru-RU sk-SK sl-SI sr-RS sv-SE sw-KE ta-IN te-IN th-TH tr-TR uk-UA ur-IN vi-VN yue-HK"
)
"""https://cloud.google.com/text-to-speech/docs/list-voices-and-types

`languageCode` has no script: https://cloud.google.com/text-to-speech/docs/reference/rest/v1/VoiceSelectionParams
"""

_WHISPER_CODES = (
    "af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu "
    "hy id is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps pt "
    "ro ru sa sd si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo zh"
)
WHISPER = Languages.of_vendor(f"{_WHISPER_CODES} yue")
"""https://github.com/openai/whisper/blob/main/whisper/tokenizer.py"""
WHISPER_1 = Languages.of_vendor(f"{_WHISPER_CODES} yue=zh")
"""OpenAI's `whisper-1` is large-v2. Only large-v3 has a code for Cantonese, which is Chinese to earlier models."""

_ELEVENLABS_29 = "ar bg cs da de el en es fi fil fr hi hr id it ja ko ms nl pl pt ro ru sk sv ta tr uk zh"
_ELEVENLABS_32 = Languages.of_vendor(f"{_ELEVENLABS_29} hu no nn=no vi")
_ENGLISH = Languages.of_vendor("en")
ELEVENLABS_MODELS = {
    "eleven_flash_v2_5": _ELEVENLABS_32,
    "eleven_turbo_v2_5": _ELEVENLABS_32,
    "eleven_flash_v2": _ENGLISH,
    "eleven_turbo_v2": _ENGLISH,
    "eleven_monolingual_v1": _ENGLISH,
    "eleven_multilingual_v2": Languages.of_vendor(_ELEVENLABS_29),
    "eleven_v3": Languages.of_vendor(
        f"{_ELEVENLABS_29} af as az be bn bs ca ceb cy et fa ga gl gu ha he hu hy is jv ka kk kn ky lb ln lt lv "
        "mk ml mr ne no nn=no ny pa ps sd sl so sr sw te th ur vi"
    ),
}
"""By the beginning of a model's name, the longest one first: https://elevenlabs.io/docs/overview/models."""
