"""Pronunciation assessment by vendor A (§4.18): phrases are recognized as audio arrives and merged at the end."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

from streams.wire.model import Model
from vendors.account import Account, AssessmentSpec
from vendors.errors import Garbled, Refused
from vendors.http.transport import VendorHttp
from vendors.protocols import (
    Assessment,
    AssessmentItem,
    AssessmentRequest,
    AudioFormat,
    AudioInput,
    Transcript,
)
from vendors.speech.azure.languages import ASSESSMENT, RECOGNITION, word_gap
from vendors.speech.azure.merging import merge_phrases
from vendors.speech.azure.recognition import Hypothesis, Phrase, RecognitionRequest, open_recognition, phrase_text
from vendors.speech.azure.sockets import socket_url
from vendors.speech.languages import LanguageNotOffered, vendor_code

_PCM = AudioFormat("audio/pcm", 16_000)
_SPOKEN_PHONEMES = frozenset({"en-US"})
"""The locales for which the vendor reports which phonemes it has heard:
https://learn.microsoft.com/azure/ai-services/speech-service/how-to-pronunciation-assessment."""
_SPOKEN_COUNT = 3
"""How many phonemes it reports for each one of the reference, in `NBestPhonemes`. The best-fitting one is first."""


class AssessmentOptions(Model):
    phoneme_alphabet: Literal["SAPI", "IPA"] = "SAPI"
    """The alphabet of phonemes in the result, for languages whose phonemes the vendor reports."""


class AzureAssessment:
    """Assessment with one account.

    It uses the vendor's continuous mode. The other mode is limited to 30 seconds, which is not known in advance,
    and ends at the first pause.
    """

    Options = AssessmentOptions

    def __init__(self, http: VendorHttp, account: Account, spec: AssessmentSpec) -> None:
        self._options = AssessmentOptions.of(spec.options)
        self._http = http
        self._account = account
        self._connect_s = spec.connect_s

    @asynccontextmanager
    async def assess(
        self, audio: AudioInput, request: AssessmentRequest
    ) -> AsyncIterator[AsyncIterator[AssessmentItem]]:
        language = self._locale(request.language)
        query = {"language": language, "format": "detailed", "profanity": "raw"}
        url = socket_url(self._account, "/stt/speech/universal/v2", query)
        recognition = RecognitionRequest(audio, _PCM, self._context(request, language))
        async with (
            open_recognition(self._http, self._account, url, recognition, connect_s=self._connect_s) as results,
            aclosing(_items(self._account.platform, results, request)) as items,
        ):
            yield items

    def _locale(self, language: str) -> str:
        """Return the nearest locale with assessment, or else that of recognition. Raises `Refused`."""
        platform = self._account.platform
        try:
            heard = vendor_code(platform, language, RECOGNITION, passes_on=True)
            return vendor_code(platform, heard, ASSESSMENT, passes_on=True)
        except LanguageNotOffered as error:
            raise Refused(platform, f"does not assess this language: {error}") from None

    def _context(self, request: AssessmentRequest, language: str) -> dict[str, Any]:
        # All fields are sent, because the vendor's defaults differ from ours.
        assessment: dict[str, Any] = {
            "referenceText": request.reference_text,
            "gradingSystem": request.grading_system,
            "granularity": request.granularity,
            "dimension": "Comprehensive",
            "enableMiscue": request.enable_miscue,
            "enableProsodyAssessment": request.enable_prosody_assessment,
            "phonemeAlphabet": self._options.phoneme_alphabet,
        }
        if language in _SPOKEN_PHONEMES:
            assessment["nBestPhonemeCount"] = _SPOKEN_COUNT
        return {
            "phraseDetection": {
                "mode": "Conversation",
                "language": language,
                "enrichment": {"pronunciationAssessment": assessment},
            },
            "phraseOutput": {
                "format": "Detailed",
                "detailed": {"options": ["WordTimings", "PronunciationAssessment", "SNR"]},
            },
        }


async def _items(
    vendor: str, results: AsyncIterator[Hypothesis | Phrase], request: AssessmentRequest
) -> AsyncGenerator[AssessmentItem]:
    gap = word_gap(request.language)
    phrases: list[Mapping[str, Any]] = []
    texts: list[str] = []
    phrase: Mapping[str, Any] = {}
    async for item in results:
        match item:
            case Hypothesis(text):
                yield Transcript(gap.join([*texts, text.strip()]), final=False)
            case Phrase(value):
                phrase = value or phrase
                if text := phrase_text(vendor, value).strip():
                    texts.append(text)
                    phrases.append(value)
    if not phrases:
        yield Assessment("", phrase)
        return
    try:
        # Comparing a long text takes long enough to block the loop, so it runs in a thread.
        raw = await asyncio.to_thread(merge_phrases, phrases, request)
    except ValueError:
        raise Garbled(vendor, "sent a malformed assessment") from None
    yield Assessment(gap.join(texts), raw)
