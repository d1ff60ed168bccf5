"""Speech by vendor A with the sandbox, and every fault at both positions."""

import asyncio

import pytest

from streams.audio.mp3 import Mp3Joiner
from tests.sampling import paired
from tests.vendors.sandbox_calls import leave_waiting
from tests.vendors.speech.azure.clients import audio_of, sandbox_voice, shapes_of, synthesize
from tests.vendors.speech.azure.inputs import SAID
from tests.vendors.speech.azure.service import REFUSED
from vendors.errors import Empty, Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import SpeechItem, Visemes
from vendors.sandbox.content import speech, speech_ms
from vendors.sandbox.server import Running
from vendors.speech.visemes import estimate


@pytest.mark.parametrize("need_viseme", [False, True])
async def test_sandbox_speaks_the_whole_text(http: VendorHttp, sandbox: Running, need_viseme: bool):
    client = sandbox_voice(http, sandbox, spec={"need_viseme": need_viseme, "audio_format": "wav", "speed": 2.0})
    items = await synthesize(client, "Tom & Jerry <3")

    assert audio_of(items) == speech("Tom & Jerry <3", 24_000, speed=2.0)
    if need_viseme:
        assert shapes_of(items) == estimate("Tom & Jerry <3", speech_ms("Tom & Jerry <3", speed=2.0))
    entry = await sandbox.bill.wait()
    assert (entry.how, entry.billed) == ("done", {"characters": 14})


async def test_mp3_is_the_same_with_and_without_shapes(http: VendorHttp, sandbox: Running):
    without_shapes = audio_of(await synthesize(sandbox_voice(http, sandbox)))
    items = await synthesize(sandbox_voice(http, sandbox, spec={"need_viseme": True}))

    assert audio_of(items) == without_shapes
    joiner = Mp3Joiner()
    joiner.feed(without_shapes)
    joiner.end()
    assert joiner.duration_ms == pytest.approx(speech_ms(SAID), abs=100)


@pytest.mark.parametrize(("fault", "need_viseme"), paired([*REFUSED], [False, True]))
async def test_refusal_is_reported_with_its_status(
    http: VendorHttp, sandbox: Running, fault: str, need_viseme: bool
):
    with pytest.raises(Refused) as refused:
        await synthesize(
            sandbox_voice(http, sandbox, spec={"need_viseme": need_viseme}, fault=fault, retry_after_s=0.01)
        )

    assert (refused.value.vendor_status, refused.value.retryable) == REFUSED[fault]


@pytest.mark.parametrize("need_viseme", [False, True])
async def test_throttled_call_is_retried_once(http: VendorHttp, sandbox: Running, need_viseme: bool):
    client = sandbox_voice(
        http, sandbox, spec={"need_viseme": need_viseme}, fault="rate_limited", times=1, retry_after_s=0.01
    )

    assert audio_of(await synthesize(client))
    assert [entry.how for entry in sandbox.bill.since(0)] == ["fault", "done"]


@pytest.mark.parametrize(
    ("key_options", "kind"),
    [
        (("wrong_content_type", "before"), Garbled),
        (("cut_mid_stream", "before"), Garbled),
        (("cut_mid_stream", "after"), Garbled),
        (("error_inside_200", "before"), Garbled),
        (("empty_answer", "before"), Empty),
    ],
)
async def test_fault_in_a_response_over_http_is_never_a_normal_end(
    http: VendorHttp, sandbox: Running, key_options: tuple[str, str], kind: type[VendorError]
):
    await check_fault(http, sandbox, key_options, kind, need_viseme=False)


@pytest.mark.parametrize(
    ("key_options", "kind"),
    [
        (("wrong_content_type", "before"), Refused),
        (("cut_mid_stream", "before"), Garbled),
        (("cut_mid_stream", "after"), Garbled),
        (("cut_mid_stream", "1000"), Garbled),  # After all audio and before the end mark.
        (("malformed_frame", "before"), Garbled),
        (("malformed_frame", "after"), Garbled),
        (("error_inside_200", "before"), Refused),
        (("error_inside_200", "after"), Refused),
        (("empty_answer", "before"), Empty),
    ],
)
async def test_fault_in_a_turn_on_a_socket_is_never_a_normal_end(
    http: VendorHttp, sandbox: Running, key_options: tuple[str, str], kind: type[VendorError]
):
    await check_fault(http, sandbox, key_options, kind, need_viseme=True)


async def check_fault(
    http: VendorHttp,
    sandbox: Running,
    key_options: tuple[str, str],
    kind: type[VendorError],
    *,
    need_viseme: bool,
) -> None:
    """Check that a fault is raised as `kind`, and without output if it precedes the first one."""
    fault, position = key_options
    heard: list[SpeechItem] = []

    async def listen() -> None:
        client = sandbox_voice(http, sandbox, spec={"need_viseme": need_viseme}, fault=fault, position=position)
        async with client.speak(SAID) as items:
            async for item in items:
                heard.append(item)  # noqa: PERF401 - what came before the fault counts

    with pytest.raises(kind) as failed:
        await listen()

    assert failed.value.vendor == "vendor_a_audio"
    assert position != "before" or audio_of(heard) == b""


@pytest.mark.parametrize(
    ("stall", "need_viseme"),
    paired(
        [
            "hang_before_headers before",
            "hang_before_output before",
            "stall_mid_stream before",
            "stall_mid_stream after",
        ],
        [False, True],
    ),
)
async def test_leaving_the_block_closes_the_call(http: VendorHttp, sandbox: Running, stall: str, need_viseme: bool):
    fault, position = stall.split()
    client = sandbox_voice(http, sandbox, spec={"need_viseme": need_viseme}, fault=fault, position=position)
    await leave_waiting(synthesize(client), sandbox)

    async with asyncio.timeout(1):
        entry = await sandbox.bill.wait()
    assert entry.how == "closed_by_client"


async def test_slow_audio_is_complete(http: VendorHttp, sandbox: Running):
    client = sandbox_voice(
        http, sandbox, spec={"need_viseme": True, "audio_format": "wav"}, fault="slow_drip", pace_ms=5
    )

    assert audio_of(await synthesize(client, "Hi.")) == speech("Hi.", 24_000)


@pytest.mark.parametrize("need_viseme", [False, True])
async def test_unknown_voice_is_refused_without_a_retry(http: VendorHttp, sandbox: Running, need_viseme: bool):
    with pytest.raises(Refused) as refused:
        await synthesize(
            sandbox_voice(http, sandbox, spec={"need_viseme": need_viseme, "voice": "en-US-NobodyNeural"})
        )

    assert not refused.value.retryable
    if need_viseme:
        assert "Unsupported voice en-US-NobodyNeural" in str(refused.value)


async def test_leaving_the_block_closes_the_connection_immediately(http: VendorHttp, sandbox: Running):
    client = sandbox_voice(http, sandbox, spec={"need_viseme": True}, pace_ms=60_000)
    async with client.speak(SAID) as items:
        async for item in items:
            if isinstance(item, Visemes):
                break

    async with asyncio.timeout(1):
        entry = await sandbox.bill.wait()
    assert entry.how == "closed_by_client"
