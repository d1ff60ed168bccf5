"""The codes that each vendor receives for the tags of clients."""

from collections.abc import Callable
from contextlib import suppress
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language_tags import WELL_FORMED
from vendors.account import Account, RecognitionSpec, SpeechSpec
from vendors.http.transport import VendorHttp
from vendors.protocols import Recognizer, Synthesizer
from vendors.speech.azure import languages as azure
from vendors.speech.azure.stt import AzureRecognition
from vendors.speech.azure.tts import AzureSpeech
from vendors.speech.elevenlabs import ElevenLabsSpeech
from vendors.speech.google_stt import GoogleRecognition
from vendors.speech.google_tts import GoogleSpeech
from vendors.speech.languages import (
    ELEVENLABS_MODELS,
    GOOGLE_RECOGNITION,
    GOOGLE_SYNTHESIS,
    WHISPER,
    WHISPER_1,
    LanguageNotOffered,
)
from vendors.speech.local import LocalSpeech
from vendors.speech.openai import OpenAITranscription

VENDORS = {
    "azure stt": azure.RECOGNITION,
    "azure tts": azure.SYNTHESIS,
    "azure assess": azure.ASSESSMENT,
    "google stt": GOOGLE_RECOGNITION,
    "google tts": GOOGLE_SYNTHESIS,
    "whisper-1": WHISPER_1,
    "whisper": WHISPER,
    "flash v2.5": ELEVENLABS_MODELS["eleven_flash_v2_5"],
    "v3": ELEVENLABS_MODELS["eleven_v3"],
}
_ = None
CODES = {
    "zh-Hans-CN":         ("zh-CN", "zh-CN", "zh-CN", "cmn-Hans-CN", "cmn-CN", "zh", "zh", "zh", "zh"),
    "zh-Hant-TW":         ("zh-TW", "zh-TW", "zh-TW", "cmn-Hant-TW", "cmn-TW", "zh", "zh", "zh", "zh"),
    "zh_TW_#Hant":        ("zh-TW", "zh-TW", "zh-TW", "cmn-Hant-TW", "cmn-TW", "zh", "zh", "zh", "zh"),
    "zh-Hant":            ("zh-TW", "zh-TW", "zh-TW", "cmn-Hant-TW", "cmn-TW", "zh", "zh", "zh", "zh"),
    "zh":                 ("zh-CN", "zh-CN", "zh-CN", "cmn-Hans-CN", "cmn-CN", "zh", "zh", "zh", "zh"),
    "zh-HK":              ("zh-HK", "zh-HK", "zh-HK", "yue-Hant-HK", "yue-HK", "zh", "zh", "zh", "zh"),
    "yue-Hant-HK":        ("zh-HK", "zh-HK", "zh-HK", "yue-Hant-HK", "yue-HK", "zh", "yue", _, _),
    "es-419":             ("es-MX", "es-MX", "es-MX", "es-419", "es-US", "es", "es", "es", "es"),
    "es-BZ":              ("es-MX", "es-MX", "es-MX", "es-419", "es-US", "es", "es", "es", "es"),
    "iw-IL":              ("he-IL", "he-IL", _, "iw-IL", "he-IL", "he", "he", _, "he"),
    "en_US":              ("en-US", "en-US", "en-US", "en-US", "en-US", "en", "en", "en", "en"),
    "EN-gb":              ("en-GB", "en-GB", "en-GB", "en-GB", "en-GB", "en", "en", "en", "en"),
    "en-MT":              ("en-GB", "en-GB", "en-GB", "en-GB", "en-GB", "en", "en", "en", "en"),
    "en-US-u-ca-gregory": ("en-US", "en-US", "en-US", "en-US", "en-US", "en", "en", "en", "en"),
    "de-x-twain":         ("de-DE", "de-DE", "de-DE", "de-DE", "de-DE", "de", "de", "de", "de"),
    "de-LU":              ("de-DE", "de-DE", "de-DE", "de-DE", "de-DE", "de", "de", "de", "de"),
    "fr-CA":              ("fr-CA", "fr-CA", "fr-CA", "fr-CA", "fr-CA", "fr", "fr", "fr", "fr"),
    "no-NO":              ("nb-NO", "nb-NO", "nb-NO", "no-NO", "nb-NO", "no", "no", "no", "no"),
    "nn-NO":              ("nb-NO", "nb-NO", "nb-NO", "no-NO", "nb-NO", "nn", "nn", "no", "no"),
    "in-ID":              ("id-ID", "id-ID", _, "id-ID", "id-ID", "id", "id", "id", "id"),
    "jv-ID":              ("jv-ID", "jv-ID", _, "jv-ID", _, "jw", "jw", _, "jv"),
    "sr-Latn-RS":         ("sr-RS", "sr-Latn-RS", _, "sr-RS", "sr-RS", "sr", "sr", _, "sr"),
    "fil-PH":             ("fil-PH", "fil-PH", _, "fil-PH", "fil-PH", "tl", "tl", "fil", "fil"),
    "tl-PH":              ("fil-PH", "fil-PH", _, "fil-PH", "fil-PH", "tl", "tl", "fil", "fil"),
    "pt":                 ("pt-BR", "pt-BR", "pt-BR", "pt-BR", "pt-BR", "pt", "pt", "pt", "pt"),
    "pt-AO":              ("pt-PT", "pt-PT", "pt-PT", "pt-PT", "pt-PT", "pt", "pt", "pt", "pt"),
    "ar-001":             ("ar-EG", "ar-EG", "ar-EG", "ar-EG", "ar-XA", "ar", "ar", "ar", "ar"),
    "pa-IN":              ("pa-IN", "pa-IN", _, "pa-Guru-IN", "pa-IN", "pa", "pa", _, "pa"),
    "pa-Guru-IN":         ("pa-IN", "pa-IN", _, "pa-Guru-IN", "pa-IN", "pa", "pa", _, "pa"),
    "pa-Arab-PK":         (_, _, _, _, _, "pa", "pa", _, "pa"),
    "pa-PK":              (_, _, _, _, _, "pa", "pa", _, "pa"),
    "sr-ME":              ("sr-RS", "sr-Latn-RS", _, "sr-RS", "sr-RS", "sr", "sr", _, "sr"),
    "uz-Cyrl-UZ":         (_, _, _, _, _, "uz", "uz", _, _),
    "uz-Latn":            ("uz-UZ", "uz-UZ", _, "uz-UZ", _, "uz", "uz", _, _),
    "az-Cyrl-AZ":         (_, _, _, _, _, "az", "az", _, "az"),
    "kk-Arab-CN":         (_, _, _, _, _, "kk", "kk", _, "kk"),
    "ks-Deva-IN":         (_, _, _, _, _, _, _, _, _),
    "iu-CA":              (_, "iu-Cans-CA", _, _, _, _, _, _, _),
    "tn-ZA":              (_, _, _, "tn-Latn-ZA", _, _, _, _, _),
    "haw":                (_, _, _, _, _, "haw", "haw", _, _),
    "mul":                (_, _, _, _, _, _, _, _, _),
    "und":                (_, _, _, _, _, _, _, _, _),
}  # fmt: skip
"""By hand, from the lists that the vendors publish. `None`: not on the list."""


@pytest.mark.parametrize("code", CODES)
def test_a_tag_reaches_each_vendor_as_one_of_its_codes(code: str):
    assert tuple(offered.find(code) for offered in VENDORS.values()) == CODES[code]


ACCOUNT = Account("main", "vendor", "http://127.0.0.1:9")
HEARS: list[Callable[[VendorHttp, str], Recognizer]] = [
    lambda http, code: AzureRecognition(http, ACCOUNT, RecognitionSpec("", language_code=code)),
    lambda http, code: GoogleRecognition(http, ACCOUNT, RecognitionSpec("", language_code=code)),
    lambda http, code: OpenAITranscription(http, ACCOUNT, RecognitionSpec("whisper-1", language_code=code)),
    lambda http, code: OpenAITranscription(http, ACCOUNT, RecognitionSpec("gpt-4o-transcribe", language_code=code)),
]
SPEAKS: list[Callable[[VendorHttp, str], Synthesizer]] = [
    lambda http, code: AzureSpeech(http, ACCOUNT, SpeechSpec("", voice="own", language_code=code)),
    lambda http, code: GoogleSpeech(http, ACCOUNT, SpeechSpec("", language_code=code)),
    lambda http, code: ElevenLabsSpeech(http, ACCOUNT, SpeechSpec("eleven_v3", voice="v", language_code=code)),
    lambda http, code: LocalSpeech(http, ACCOUNT, SpeechSpec("espeak", language_code=code)),
]


@given(WELL_FORMED | st.text(max_size=12))
def test_a_vendor_takes_a_tag_or_does_not_offer_it(code: str):
    http = cast("VendorHttp", None)  # Nothing is sent.
    for client in (*HEARS, *SPEAKS):
        with suppress(LanguageNotOffered):
            client(http, code)


@pytest.mark.parametrize(
    ("model", "code"),
    [("eleven_flash_v2_5", "he"), ("eleven_multilingual_v2", "th-TH"), ("", "th"), ("eleven_turbo_v2", "de")],
)
def test_a_voice_of_a_model_without_the_language_is_not_asked(model: str, code: str):
    spec = SpeechSpec(model, voice="v", language_code=code)
    with pytest.raises(LanguageNotOffered, match=f"^{code} is not offered by vendor$"):
        ElevenLabsSpeech(cast("VendorHttp", None), ACCOUNT, spec)
