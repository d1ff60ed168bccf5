"""The client of the local assessor, with the real engine and with faulty responses."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from streams.input_buffer import InputBuffer
from streams.tasks import background
from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid, InvalidParameter
from tests.vendors.http.upstream import Upstream, cut, hold, plain, refusing, streaming
from tests.vendors.local.conftest import Local
from tests.vendors.local.spoken_audio import REFERENCE, Reader, reader
from tests.waiting import passes, until
from vendors.account import Account, AssessmentSpec
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import Assessment, AssessmentRequest, AudioInput
from vendors.speech.local_assess import LocalAssessment

__all__ = ["reader"]

REQUEST = AssessmentRequest(REFERENCE)


def buffered(*pieces: bytes) -> InputBuffer:
    full = InputBuffer()
    for piece in pieces:
        full.write(piece)
    full.end()
    return full


async def assessed(
    http: VendorHttp, url: str, audio: AudioInput, request: AssessmentRequest = REQUEST, **spec: Any
) -> Assessment:
    account = Account("main", "local_audio", url)
    async with LocalAssessment(http, account, AssessmentSpec(**spec)).assess(audio, request) as items:
        (assessment,) = [item async for item in items]
    assert isinstance(assessment, Assessment)
    return assessment


async def test_all_options_reach_the_engine(http: VendorHttp, local: Local, reader: Reader) -> None:
    pcm = await reader("The quick fox jumps over the lazy dog.")
    request = AssessmentRequest(
        REFERENCE,
        language="en-GB",
        grading_system="FivePoint",
        granularity="Word",
        enable_miscue=True,
        enable_prosody_assessment=True,
    )
    result = await assessed(http, local.url, buffered(pcm), request, model="pocketsphinx")

    assert (
        "jumps over the lazy dog" in result.text.lower()
    )  # A short word may be misrecognized, because its audio differs in each run.
    (best,) = result.raw["NBest"]
    assert "ProsodyScore" in best["PronunciationAssessment"]
    assert best["PronunciationAssessment"]["AccuracyScore"] <= 5
    by_word = {word["Word"]: word for word in best["Words"]}
    assert by_word["brown"]["PronunciationAssessment"]["ErrorType"] == "Omission"
    assert "Phonemes" not in by_word["jumps"]


async def test_no_recognized_words_are_an_empty_text(http: VendorHttp, local: Local, needs) -> None:
    needs("pocketsphinx")
    assert (await assessed(http, local.url, buffered(bytes(64_000)))).text == ""


async def test_other_languages_are_refused(http: VendorHttp, local: Local, needs) -> None:
    needs("pocketsphinx")
    with pytest.raises(Refused, match="grades English only") as refused:
        await assessed(http, local.url, buffered(bytes(64_000)), AssessmentRequest("Hallo", language="de-DE"))
    assert (refused.value.vendor_status, refused.value.retryable) == (400, False)


async def test_audio_is_sent_while_it_arrives(http: VendorHttp, local: Local, reader: Reader) -> None:
    pcm = await reader(REFERENCE)
    live = InputBuffer()
    half = len(pcm) // 2
    read = asyncio.Event()

    class Watched:
        async def read(self) -> AsyncGenerator[bytes]:
            async for piece in live.read():
                yield piece
                read.set()

    live.write(pcm[:half])
    async with asyncio.TaskGroup() as group:
        requested = group.create_task(assessed(http, local.url, Watched()))
        await read.wait()
        assert not requested.done()
        live.write(pcm[half:])
        live.end()
    assert requested.result().raw["NBest"][0]["PronunciationAssessment"]["AccuracyScore"] > 85


async def test_errors_of_the_input_are_reported(http: VendorHttp, local: Local, needs) -> None:
    needs("pocketsphinx")
    broken = InputBuffer()
    broken.write(bytes(3_200))
    broken.fail(InvalidParameter("input timed out"))
    with pytest.raises(InvalidParameter, match="input timed out"):
        await assessed(http, local.url, broken)


async def test_a_missing_engine_is_an_error_of_the_config(http: VendorHttp, upstream: Upstream) -> None:
    upstream.respond_with(refusing(501, "pocketsphinx is not installed", "engine_missing"))
    with pytest.raises(ConfigInvalid, match="is not installed"):
        await assessed(http, upstream.url, buffered(bytes(3_200)))


async def test_a_response_is_passed_on_unchanged(http: VendorHttp, upstream: Upstream) -> None:
    raw = {"Id": "1", "NBest": [{"Confidence": 1.0}]}
    upstream.respond_with(plain(body=dumps({"text": "Hi", "raw_data": raw}), Content_Type="application/json"))
    assert await assessed(http, upstream.url, buffered(b"\1\0", b"\2\0")) == Assessment("Hi", raw)
    (seen,) = upstream.seen
    assert seen.path == "/audio/assessments"
    assert b"\r\n\r\n\1\0\2\0\r\n--" in seen.body
    assert b'name="model"\r\n\r\npocketsphinx\r\n' in seen.body


@pytest.mark.parametrize(
    "body",
    [b"{}", b"[]", b"nonsense", b'{"text": 1, "raw_data": {}}', b'{"text": "Hi", "raw_data": []}'],
)
async def test_a_response_of_another_form_is_garbled(http: VendorHttp, upstream: Upstream, body: bytes) -> None:
    upstream.respond_with(plain(body=body, Content_Type="application/json"))
    with pytest.raises(Garbled):
        await assessed(http, upstream.url, buffered(bytes(3_200)))


async def test_a_truncated_response_is_an_error(http: VendorHttp, upstream: Upstream) -> None:
    upstream.respond_with(streaming([b'{"text": "Hi", '], end=cut, content_type="application/json"))
    with pytest.raises(VendorError):
        await assessed(http, upstream.url, buffered(bytes(3_200)))


async def test_leaving_the_block_closes_the_connection(http: VendorHttp, upstream: Upstream) -> None:
    upstream.respond_with(streaming([b"{"], end=hold, content_type="application/json"))
    async with background(assessed(http, upstream.url, buffered(bytes(3_200)))) as assessing:
        await until(lambda: upstream.seen)
        await passes()
        assert not assessing.done()
    async with asyncio.timeout(5):
        await upstream.left.wait()
