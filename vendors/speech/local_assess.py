"""Pronunciation assessment (§4.18) by the local engine: English only, and less accurate than a vendor's."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any
from uuid import uuid4

from vendors.account import Account, AssessmentSpec
from vendors.errors import Garbled
from vendors.http.outgoing import Outgoing
from vendors.http.transport import Incoming, VendorHttp
from vendors.json_events import object_of
from vendors.protocols import Assessment, AssessmentItem, AssessmentRequest, AudioInput

_DEFAULT_MODEL = "pocketsphinx"


class LocalAssessment:
    """Assessment by one engine. The audio is uploaded as it arrives; the result comes at its end."""

    def __init__(self, http: VendorHttp, account: Account, spec: AssessmentSpec) -> None:
        self._http = http
        self._account = account
        self._model = spec.model or _DEFAULT_MODEL
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
            async with self._http.stream(call) as response, aclosing(_items(response)) as items:
                yield items

    async def _form(
        self, boundary: str, request: AssessmentRequest, audio: AsyncIterator[bytes]
    ) -> AsyncGenerator[bytes]:
        """Yield the multipart form: the fields, then the audio as it arrives."""
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


async def _items(response: Incoming) -> AsyncGenerator[AssessmentItem]:
    yield parse_complete(response.vendor, await response.json())


def parse_complete(vendor: str, response: Any) -> Assessment:
    value = object_of(response)
    text, raw = value.get("text"), value.get("raw_data")
    if not isinstance(text, str) or not isinstance(raw, dict):
        raise Garbled(vendor, "sent a malformed assessment")
    return Assessment(text, raw)
