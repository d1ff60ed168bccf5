"""Speech is recognized while it arrives if the vendor supports this, and otherwise once it is complete."""

import asyncio
import math
import struct
from collections.abc import AsyncIterator

import pytest

from streams.audio.audio import wav_header
from tests.app.ai.conftest import Talk
from tests.app.ai.speech.ears import coded, ears, heard
from tests.peers.sse_client import all_events, named
from tests.running.servers import Server
from tests.streams.audio.wav_files import fmt, wav
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

SPOKEN = b"".join(struct.pack("<h", round(9000 * math.sin(at / 20))) for at in range(16_000))
"""One second of a tone: 32,000 bytes."""
LOUD_LIST = b"LIST\xa0\x0f\0\0INFOISFT\x94\x0f\0\0" + b"x" * 3_988
"""Text that may follow the samples of WAV. As samples, it would be loud."""


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def test_vendor_receives_audio_while_the_user_still_speaks(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", key=key_of(text="Where is my parcel?"))

    async def speaking() -> AsyncIterator[bytes]:
        yield talk.params("one", type="audio")
        yield coded(SPOKEN[:9_600])
        call = await asyncio.wait_for(sandbox.bill.wait(heard), 5)
        assert call.ended is None
        yield coded(SPOKEN[9_600:])

    async with talk.post("/bp/ai/conversation", data=speaking()) as response:
        seen = await all_events(response)
    assert seen[-1].name == "end", seen[-1]
    assert named(seen, "user_input") == ["Where is my parcel?"]
    assert seen[-1].content["latency_ms"]["input"] <= seen[-1].content["latency_ms"]["stt"]


@pytest.mark.parametrize("platform", ["vendor_a_audio", "vendor_b_audio"])
@pytest.mark.parametrize(
    ("audio", "reported"),
    [
        (bytes(32_000), "no speech was heard"),
        (b"\x7f\0\x80\xff" * 8_000, "no speech was heard"),
        (SPOKEN[:3_198], "audio is too short"),
        (wav_header(16_000, data_bytes=3_198) + SPOKEN[:3_198], "audio is too short"),
        (wav_header(48_000, channels=2) + bytes(96_000), "no speech was heard"),
        (wav_header(16_000, data_bytes=32_000) + bytes(32_000) + LOUD_LIST, "no speech was heard"),
        (wav_header(16_000, data_bytes=1_600) + SPOKEN[:1_600] + LOUD_LIST, "audio is too short"),
        (wav((b"JUNK", bytes(70_000)), fmt(1, 1, 16_000, 16), data=bytes(32_000)), "no speech was heard"),
    ],
)
async def test_nothing_is_asked_about_samples_without_sound(
    talk: Talk, sandbox: Running, platform: str, audio: bytes, reported: str
) -> None:
    server = talk.server
    await ears(server, sandbox, "one", platform)

    async def speaking() -> AsyncIterator[bytes]:
        yield talk.params("one", type="audio")
        for begin in range(0, len(audio), 999):
            yield coded(audio[begin : begin + 999])

    async with talk.post("/bp/ai/conversation", data=speaking()) as response:
        seen = await all_events(response)

    assert seen[-1].name == "error"
    assert seen[-1].content["error"]["message"] == f"invalid_parameter: {reported}"
    assert not list(sandbox.bill.since(0))


async def test_timeout_of_the_first_output_starts_at_the_end_of_the_input(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    waits = {"connect_s": 2, "first_output_s": 0.6, "between_s": 2}
    await ears(server, sandbox, "one", key=key_of(text="Good morning"), waits=waits)

    async def speaking() -> AsyncIterator[bytes]:
        yield talk.params("one", type="audio")
        for at in range(0, 32_000, 4_800):
            yield coded(SPOKEN[at : at + 4_800])
            await asyncio.sleep(0.15)  # Speaking takes longer than the vendor may take.

    async with talk.post("/bp/ai/conversation", data=speaking()) as response:
        seen = await all_events(response)
    assert named(seen, "user_input") == ["Good morning"]


async def test_vendor_that_never_answers_times_out_after_the_input(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    waits = {"first_output_s": 0.2}
    await ears(server, sandbox, "one", key=key_of(fault="hang_before_output", position="before"), waits=waits)
    await ears(server, sandbox, "two", "vendor_b_audio", key_of(text="Good evening"), model="whisper-1")
    body = talk.params("one", "two", type="audio") + coded(SPOKEN)
    async with talk.post("/bp/ai/conversation", data=body) as response:
        seen = await all_events(response)
    assert named(seen, "user_input") == ["Good evening"]
    call = await asyncio.wait_for(sandbox.bill.wait(lambda entry: heard(entry) and entry.ended is not None), 1)
    assert call.how == "closed_by_client"


async def test_next_vendor_gets_the_whole_input_if_the_first_refuses_early(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", key=key_of(fault="unauthorized"))
    await ears(server, sandbox, "two", "vendor_b_audio", key_of(text="All of it"), model="whisper-1")

    async def speaking() -> AsyncIterator[bytes]:
        yield talk.params("one", "two", type="audio")
        yield coded(SPOKEN[:9_600])
        await asyncio.wait_for(sandbox.bill.wait(heard), 5)
        yield coded(SPOKEN[9_600:])

    async with talk.post("/bp/ai/conversation", data=speaking()) as response:
        seen = await all_events(response)
    assert named(seen, "user_input") == ["All of it"]
    calls = [entry for entry in sandbox.bill.since() if heard(entry)]
    assert [call.how for call in calls] == ["fault", "done"]
    assert calls[-1].billed["seconds"] == 1


@pytest.mark.parametrize("behind", [b"*", b"A"])
async def test_error_of_the_input_ends_the_call_and_no_other_vendor_is_called(
    talk: Talk, server: Server, sandbox: Running, behind: bytes
) -> None:
    await ears(server, sandbox, "one")
    await ears(server, sandbox, "two", "vendor_b_audio", model="whisper-1")

    async def speaking() -> AsyncIterator[bytes]:
        yield talk.params("one", "two", type="audio")
        yield coded(SPOKEN[:9_600])
        await asyncio.wait_for(sandbox.bill.wait(heard), 5)
        yield behind

    async with talk.post("/bp/ai/conversation", data=speaking()) as response:
        seen = await all_events(response)
    assert [event.name for event in seen] == ["start", "error"]
    assert seen[-1].content["error"]["error_type"] == "invalid_parameter"
    call = await asyncio.wait_for(sandbox.bill.wait(), 1)
    assert call.how == "closed_by_client"
    assert len(list(sandbox.bill.since())) == 1


async def test_a_disconnected_client_closes_the_call(talk: Talk, server: Server, sandbox: Running) -> None:
    await ears(server, sandbox, "one")

    async def speaking() -> AsyncIterator[bytes]:
        yield talk.params("one", type="audio")
        yield coded(SPOKEN[:9_600])
        await asyncio.Event().wait()

    response = await talk.post("/bp/ai/conversation", data=speaking())
    await asyncio.wait_for(sandbox.bill.wait(heard), 5)
    response.close()
    call = await asyncio.wait_for(sandbox.bill.wait(), 1)
    assert call.how == "closed_by_client"
    await asyncio.wait_for(server.services.supervisor.idle(), 5)


async def test_duration_in_the_header_of_a_container_is_billed(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    from streams.audio.audio import wav_header  # noqa: PLC0415

    await ears(server, sandbox, "one", "vendor_d_audio", price={"input": 0.5})
    wav = wav_header(16_000, data_bytes=len(SPOKEN) * 2) + SPOKEN * 2
    async with talk.post("/bp/ai/conversation", data=talk.params("one", type="audio") + coded(wav)) as response:
        seen = await all_events(response)
    assert seen[-1].name == "end", seen[-1]
    async with server.services.database.connection() as conn:
        row = await conn.fetchrow("select input_unit, price from attempts where stage = 'stt'")
    call = next(entry for entry in sandbox.bill.since() if heard(entry))
    assert row["input_unit"] == call.billed["seconds"]
    assert float(row["price"]) == 0.5 * row["input_unit"]
