"""Pronunciation assessment (§4.18) by the engine on this machine: English, and weaker than a vendor's."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any
from uuid import uuid4

from streams.wire.model import Model
from vendors.account import Account, AssessmentSpec
from vendors.errors import Garbled
from vendors.protocols import Assessment, AssessmentItem, AssessmentRequest, AudioInput
from vendors.transport import Incoming, Outgoing, VendorHttp

_USUAL_MODEL = "pocketsphinx"


class AssessmentOptions(Model):
    """The local engine takes none."""


class LocalAssessment:
    """One engine. The audio goes up while it arrives; the answer comes when it has ended."""

    Options = AssessmentOptions

    def __init__(self, http: VendorHttp, account: Account, spec: AssessmentSpec) -> None:
        AssessmentOptions.of(spec.options)
        self._http = http
        self._account = account
        self._model = spec.model or _USUAL_MODEL
        self._connect_s = spec.connect_s

    @asynccontextmanager
    async def assess(
        self, audio: AudioInput, request: AssessmentRequest
    ) -> AsyncIterator[AsyncIterator[AssessmentItem]]:
        boundary = uuid4().hex
        async with aclosing(audio.read()) as pieces, aclosing(self._form(boundary, request, pieces)) as form:
            call = Outgoing(
                self._account.platform,
                self._account.url("/audio/assessments"),
                headers={**self._account.bearer(), "Content-Type": f"multipart/form-data; boundary={boundary}"},
                body=form,
                connect_s=self._connect_s,
            )
            async with self._http.stream(call) as answer, aclosing(_items(answer)) as items:
                yield items

    async def _form(
        self, boundary: str, request: AssessmentRequest, audio: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes]:
        """The fields, and then the audio as it comes."""
        fields = {
            "model": self._model,
            "reference_text": request.reference_text,
            "language": request.language,
            "grading_system": request.grading_system,
            "granularity": request.granularity,
            "enable_miscue": str(request.enable_miscue).lower(),
            "enable_prosody_assessment": str(request.enable_prosody_assessment).lower(),
        }
        head = "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        file = 'Content-Disposition: form-data; name="file"; filename="audio.pcm"\r\nContent-Type: audio/pcm'
        yield f"{head}--{boundary}\r\n{file}\r\n\r\n".encode()
        async for piece in audio:
            yield piece
        yield f"\r\n--{boundary}--\r\n".encode()


async def _items(answer: Incoming) -> AsyncGenerator[AssessmentItem]:
    value: Any = await answer.json()
    text = value.get("text") if isinstance(value, dict) else None
    raw = value.get("raw_data") if isinstance(value, dict) else None
    if not isinstance(text, str) or not isinstance(raw, dict):
        raise Garbled(answer.vendor, "answered with an assessment of an unknown form")
    yield Assessment(text, raw)
