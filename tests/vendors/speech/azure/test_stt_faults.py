"""Recognition by vendor A with the sandbox, and every fault at both positions."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from streams.audio.audio import wav_header
from tests.sampling import sampled
from tests.vendors.sandbox_calls import leave_waiting
from tests.vendors.speech.azure.clients import PCM, recognizer, sandbox_recognizer, transcribe
from tests.vendors.speech.azure.inputs import PAUSE, TONE
from tests.vendors.speech.azure.service import REFUSED, buffered, ogg
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioFormat, Transcript
from vendors.sandbox.server import Running


async def test_sandbox_recognizes_segments_between_pauses(http: VendorHttp, sandbox: Running):
    transcripts = await transcribe(
        sandbox_recognizer(http, sandbox, text="Good morning.|How are you?"), buffered(TONE, PAUSE, TONE)
    )

    assert transcripts[-1] == Transcript("Good morning. How are you?", final=True)
    texts = [transcript.text for transcript in transcripts]
    assert "Good morning." in texts
    assert "Good morning. how" in texts
    entry = await sandbox.bill.wait()
    assert (entry.how, round(entry.billed["seconds"], 3)) == ("done", 3)


@pytest.mark.parametrize("rate", [8_000, 16_000])
async def test_wav_is_decoded_by_its_header(http: VendorHttp, sandbox: Running, rate: int):
    wav = wav_header(rate, data_bytes=len(TONE)) + TONE

    await transcribe(
        sandbox_recognizer(http, sandbox),
        buffered(*(wav[at : at + 999] for at in range(0, len(wav), 999))),
        AudioFormat("audio/wav", 0),
    )

    entry = await sandbox.bill.wait()
    assert round(entry.billed["seconds"], 3) == 16_000 / rate


async def test_silence_is_not_speech(http: VendorHttp, sandbox: Running):
    assert await transcribe(sandbox_recognizer(http, sandbox, text="nothing of this"), buffered(PAUSE)) == [
        Transcript("", final=True)
    ]


async def test_sandbox_recognizes_ogg_over_http(http: VendorHttp, sandbox: Running):
    client = sandbox_recognizer(http, sandbox, text="Short and good.")

    assert await transcribe(client, buffered(ogg(1)), AudioFormat("audio/ogg", 0)) == [
        Transcript("Short and good.", final=True)
    ]


async def test_unknown_language_is_refused_without_a_retry(http: VendorHttp, sandbox: Running):
    with pytest.raises(Refused, match="answered 400") as refused:
        await transcribe(recognizer(http, f"{sandbox.url}/azure", language_code="tlh"), buffered(TONE))

    assert not refused.value.retryable


@pytest.mark.parametrize("fault", sampled(REFUSED, ["unauthorized", "rate_limited"]))
async def test_refusal_is_reported_with_its_status(http: VendorHttp, sandbox: Running, fault: str):
    with pytest.raises(Refused) as refused:
        await transcribe(sandbox_recognizer(http, sandbox, fault=fault, retry_after_s=0.01), buffered(TONE))

    assert (refused.value.vendor_status, refused.value.retryable) == REFUSED[fault]


@pytest.mark.parametrize(
    ("fault", "position", "kind"),
    [
        ("wrong_content_type", "before", Refused),
        ("cut_mid_stream", "before", Garbled),
        ("cut_mid_stream", "after", Garbled),
        ("cut_mid_stream", "1000", Garbled),
        ("malformed_frame", "before", Garbled),
        ("malformed_frame", "after", Garbled),
        ("error_inside_200", "before", Refused),
        ("error_inside_200", "after", Refused),
    ],
)
async def test_a_failed_turn_never_has_a_final_text(
    http: VendorHttp, sandbox: Running, fault: str, position: str, kind: type[VendorError]
):
    got: list[Transcript] = []

    async def listen() -> None:
        async with sandbox_recognizer(http, sandbox, fault=fault, position=position).transcribe(
            buffered(TONE, PAUSE, TONE), PCM
        ) as texts:
            async for transcript in texts:
                got.append(transcript)  # noqa: PERF401 - what came before the fault counts

    with pytest.raises(kind):
        await listen()

    assert not any(transcript.final for transcript in got)


async def test_answer_without_a_phrase_is_an_empty_text(http: VendorHttp, sandbox: Running):
    assert (await transcribe(sandbox_recognizer(http, sandbox, fault="empty_answer"), buffered(TONE)))[
        -1
    ] == Transcript("", final=True)


@pytest.mark.parametrize("fault", ["hang_before_headers", "hang_before_output", "stall_mid_stream"])
async def test_leaving_the_block_closes_the_call(http: VendorHttp, sandbox: Running, fault: str):
    await leave_waiting(transcribe(sandbox_recognizer(http, sandbox, fault=fault), buffered(TONE)), sandbox)

    async with asyncio.timeout(1):
        entry = await sandbox.bill.wait()
    assert entry.how == "closed_by_client"


async def test_leaving_the_block_closes_immediately_while_audio_still_arrives(http: VendorHttp, sandbox: Running):
    closed = asyncio.Event()

    class Endless:
        async def read(self) -> AsyncGenerator[bytes]:
            try:
                while True:
                    yield TONE[:3200]
                    await asyncio.sleep(0)
            finally:
                closed.set()

    async with sandbox_recognizer(http, sandbox).transcribe(Endless(), PCM) as transcripts:
        assert not (await anext(transcripts)).final

    async with asyncio.timeout(1):
        entry = await sandbox.bill.wait()
        await closed.wait()
    assert entry.how == "closed_by_client"
