"""Every client of OpenAI's protocol with every fault of the sandbox, before and after the first output."""

import asyncio
from typing import Any

import pytest

from streams.tasks import background
from tests.calendar.clock import epoch_ms
from tests.sampling import paired, sampled
from tests.vendors.chat.openai_clients import (
    BODIES,
    CLIENTS,
    PATHS,
    STREAMS,
    WHOLES,
    account,
    collect,
    is_output,
    output,
)
from tests.waiting import passes
from vendors.account import Account
from vendors.errors import Garbled, Refused, Unreachable, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import SpeechFormat, Transcript, Usage
from vendors.sandbox.faults import Fault
from vendors.sandbox.server import Running

LEAVES_WITHIN_MS = 1_000
REFUSALS = {
    Fault.UNAUTHORIZED: (401, False),
    Fault.RATE_LIMITED: (429, True),
    Fault.OUT_OF_QUOTA: (429, False),
    Fault.SERVER_ERROR: (500, True),
    Fault.UNAVAILABLE: (503, True),
}


async def failed(http: VendorHttp, name: str, to: Account) -> tuple[list[Any], VendorError]:
    """Return the output before the error, and the error."""
    items: list[Any] = []
    with pytest.raises(VendorError) as fault:
        await collect(CLIENTS[name](http, to), items)
    assert "sandbox" not in str(fault.value), "the key is in no message"
    return [item for item in items if is_output(item)], fault.value


def check_part(name: str, part: str | bytes, whole: str | bytes, *, behind: int) -> None:
    """Check that the output before a fault is a prefix of the complete output, and not empty after output."""
    assert len(part) < len(whole)
    assert not part or whole[: len(part)] == part
    if name in {
        "spoken_chat_wav",
        "recognition_streamed",
    }:  # One holds uncertain output back, the other has no output so early.
        return
    assert bool(part) == bool(behind)


@pytest.mark.parametrize(("name", "fault"), paired([*CLIENTS], [*REFUSALS]))
async def test_refusal_is_reported_with_its_kind(http: VendorHttp, sandbox: Running, name: str, fault: Fault):
    seen, error = await failed(http, name, account(sandbox, fault=fault, retry_after_s=0.002))

    status, retryable = REFUSALS[fault]
    assert seen == []
    assert isinstance(error, Refused)
    assert (error.vendor_status, error.retryable) == (status, retryable)
    assert len(list(sandbox.bill.since())) == 1 + retryable


@pytest.mark.parametrize("name", sampled(CLIENTS, PATHS))
async def test_call_that_is_refused_once_is_retried(http: VendorHttp, sandbox: Running, name: str):
    to = account(sandbox, fault=Fault.UNAVAILABLE, times=1, retry_after_s=0.002)

    items = await collect(CLIENTS[name](http, to), [])

    assert output(items)
    assert [entry.how for entry in sandbox.bill.since()] == ["fault", "done"]


@pytest.mark.parametrize("name", sampled(CLIENTS, PATHS))
async def test_html_page_as_response_is_garbled(http: VendorHttp, sandbox: Running, name: str):
    seen, error = await failed(http, name, account(sandbox, fault=Fault.WRONG_CONTENT_TYPE))

    assert seen == []
    assert isinstance(error, Garbled)


@pytest.mark.parametrize(("name", "position"), paired([*(STREAMS | BODIES)], [0, 1, 3]))
async def test_truncated_streams_are_garbled_after_their_output(
    http: VendorHttp, sandbox: Running, name: str, position: int
):
    whole = output(await collect(CLIENTS[name](http, account(sandbox)), []))
    seen, error = await failed(http, name, account(sandbox, fault=Fault.CUT_MID_STREAM, position=position))

    assert isinstance(error, Garbled)
    assert error.retryable
    check_part(name, output(seen), whole, behind=position)


@pytest.mark.parametrize(("name", "position"), paired([*STREAMS], [0, 1, 3]))
@pytest.mark.parametrize(("fault", "kind"), [(Fault.MALFORMED_FRAME, Garbled), (Fault.ERROR_INSIDE_200, Refused)])
async def test_errors_in_a_frame_are_raised_after_the_preceding_output(
    http: VendorHttp, sandbox: Running, name: str, *, position: int, fault: Fault, kind: type[VendorError]
):
    whole = output(await collect(CLIENTS[name](http, account(sandbox)), []))
    seen, error = await failed(http, name, account(sandbox, fault=fault, position=position))

    assert isinstance(error, kind)
    check_part(name, output(seen), whole, behind=position)


@pytest.mark.parametrize(("name", "position"), paired([*WHOLES], ["before", "after"]))
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.CUT_MID_STREAM, Garbled),
        (Fault.MALFORMED_FRAME, Garbled),
        (Fault.ERROR_INSIDE_200, Refused),
    ],
)
async def test_malformed_complete_response_has_no_output(
    http: VendorHttp, sandbox: Running, name: str, *, position: str, fault: Fault, kind: type[VendorError]
):
    seen, error = await failed(http, name, account(sandbox, fault=fault, position=position))

    assert seen == []
    assert isinstance(error, kind)


@pytest.mark.parametrize("name", BODIES)
async def test_error_instead_of_audio_is_garbled(http: VendorHttp, sandbox: Running, name: str):
    seen, error = await failed(http, name, account(sandbox, fault=Fault.ERROR_INSIDE_200, position="before"))

    assert seen == []
    assert isinstance(error, Garbled)


@pytest.mark.parametrize("name", sampled(CLIENTS, PATHS))
async def test_empty_answers_have_no_output(http: VendorHttp, sandbox: Running, name: str):
    to = account(sandbox, fault=Fault.EMPTY_ANSWER)
    if name == "spoken_chat_mp3":
        assert isinstance((await failed(http, name, to))[1], Garbled)
        return

    items = await collect(CLIENTS[name](http, to), [])

    assert [item for item in items if is_output(item)] == []
    if name.startswith("recognition"):
        assert isinstance(items[-1], Transcript), "silence is a whole answer"
        assert items[-1].final


@pytest.mark.parametrize("name", sampled(CLIENTS, PATHS))
async def test_slow_answers_arrive_completely(http: VendorHttp, sandbox: Running, name: str):
    whole = output(await collect(CLIENTS[name](http, account(sandbox)), []))

    slow = await collect(CLIENTS[name](http, account(sandbox, fault=Fault.SLOW_DRIP, pace_ms=2)), [])

    assert output(slow) == whole


@pytest.mark.parametrize(
    ("name", "fault"),
    paired([*CLIENTS], [Fault.HANG_BEFORE_HEADERS, Fault.HANG_BEFORE_OUTPUT, Fault.STALL_MID_STREAM]),
)
async def test_cancelling_closes_the_call_of_a_silent_vendor(
    http: VendorHttp, sandbox: Running, name: str, fault: Fault
):
    to = account(sandbox, fault=fault)
    seen: list[Any] = []

    stalls = fault is Fault.STALL_MID_STREAM
    async with asyncio.timeout(20):
        async with background(collect(CLIENTS[name](http, to), seen)) as reading:
            await sandbox.bill.wait(lambda entry: entry.outputs == int(stalls))
            await passes()  # The client reads what the sandbox has sent.
            assert not reading.done()
            left_ms = epoch_ms()
        entry = await sandbox.bill.wait()
    assert entry.closed_ms is not None
    assert entry.closed_ms - left_ms < LEAVES_WITHIN_MS
    if not stalls or name in WHOLES:
        assert [item for item in seen if is_output(item)] == []


@pytest.mark.parametrize("name", sampled(STREAMS | BODIES, PATHS))
async def test_call_that_is_closed_after_the_first_output_is_billed_for_its_output(
    http: VendorHttp, sandbox: Running, name: str
):
    async with CLIENTS[name](http, account(sandbox, pace_ms=40)) as items:
        async for item in items:
            if is_output(item):
                break
    left_ms = epoch_ms()

    async with asyncio.timeout(20):
        entry = await sandbox.bill.wait()
    whole = await collect(CLIENTS[name](http, account(sandbox)), [])
    async with asyncio.timeout(20):
        finished = await sandbox.bill.wait(lambda entry: entry.how == "done")
    assert entry.closed_ms is not None
    assert entry.closed_ms - left_ms < LEAVES_WITHIN_MS
    assert 0 < entry.outputs < finished.outputs
    if usage := [item for item in whole if isinstance(item, Usage)]:
        made = sum(amount for unit, amount in entry.billed.items() if unit != "input_tokens")
        assert made < usage[0].output_token


@pytest.mark.parametrize("name", sampled(CLIENTS, ["chat"]))
async def test_failed_handshake_opens_no_connection(http: VendorHttp, sandbox: Running, name: str):
    to = Account("main", "vendor_b_llm", f"{sandbox.broken_tls_url}/openai/v1")

    seen, error = await failed(http, name, to)

    assert seen == []
    assert isinstance(error, Unreachable)
    assert error.retryable


@pytest.mark.parametrize("name", [name for name in CLIENTS if not name.startswith(("chat", "recognition"))])
async def test_speech_announces_its_format_first(http: VendorHttp, sandbox: Running, name: str):
    items = await collect(CLIENTS[name](http, account(sandbox)), [])

    assert items[0] == SpeechFormat("audio/wav" if name.endswith("wav") else "audio/mpeg", 24_000)
    assert sum(isinstance(item, SpeechFormat) for item in items) == 1
