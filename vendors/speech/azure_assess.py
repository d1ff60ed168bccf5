"""Pronunciation assessment of vendor A (§4.18): phrase by phrase while the audio arrives, one result at the end."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Literal

from streams.wire.model import Model
from vendors.account import Account, AssessmentSpec
from vendors.errors import Garbled
from vendors.protocols import (
    Assessment,
    AssessmentItem,
    AssessmentRequest,
    AudioFormat,
    AudioInput,
    Transcript,
)
from vendors.speech.azure_joining import joined
from vendors.speech.azure_languages import locale_of, word_gap
from vendors.speech.azure_line import socket_url
from vendors.speech.azure_listening import Hypothesis, Phrase, Question, listening, said
from vendors.transport import VendorHttp

_PCM = AudioFormat("audio/pcm", 16_000)


class AssessmentOptions(Model):
    phoneme_alphabet: Literal["SAPI", "IPA"] = "SAPI"


class AzureAssessment:
    """One account.

    The vendor hears continuously: nobody knows beforehand whether the audio will be longer than the 30 seconds
    of its other mode, which also ends at the first pause.
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
        language = locale_of(request.language)
        query = {"language": language, "format": "detailed", "profanity": "raw"}
        url = socket_url(self._account, "/stt/speech/universal/v2", query)
        question = Question(audio, _PCM, self._context(request, language))
        async with (
            listening(self._http, self._account, url, question, connect_s=self._connect_s) as heard,
            aclosing(_items(self._account.platform, heard, request)) as items,
        ):
            yield items

    def _context(self, request: AssessmentRequest, language: str) -> dict[str, Any]:
        # everything is sent: what the vendor takes for granted is not what our callers do
        wanted = {
            "referenceText": request.reference_text,
            "gradingSystem": request.grading_system,
            "granularity": request.granularity,
            "dimension": "Comprehensive",
            "enableMiscue": request.enable_miscue,
            "enableProsodyAssessment": request.enable_prosody_assessment,
            "phonemeAlphabet": self._options.phoneme_alphabet,
        }
        return {
            "phraseDetection": {
                "mode": "Conversation",
                "language": language,
                "enrichment": {"pronunciationAssessment": wanted},
            },
            "phraseOutput": {
                "format": "Detailed",
                "detailed": {"options": ["WordTimings", "PronunciationAssessment", "SNR"]},
            },
        }


async def _items(
    vendor: str, heard: AsyncIterator[Hypothesis | Phrase], request: AssessmentRequest
) -> AsyncGenerator[AssessmentItem]:
    gap = word_gap(request.language)
    understood: list[dict[str, Any]] = []
    texts: list[str] = []
    last: dict[str, Any] = {}
    async for item in heard:
        match item:
            case Hypothesis(text):
                yield Transcript(gap.join([*texts, text.strip()]), final=False)
            case Phrase(last):
                if text := said(vendor, last).strip():
                    texts.append(text)
                    understood.append(last)
    if not understood:
        yield Assessment("", last)
        return
    try:
        # a long text takes the comparison a while: not on the loop
        raw = await asyncio.to_thread(joined, understood, request)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise Garbled(vendor, "sent an assessment of an unknown form") from None
    yield Assessment(gap.join(texts), raw)
