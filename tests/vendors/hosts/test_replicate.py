"""The client of the model host against the sandbox."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from streams.wire.errors import ConfigInvalid, InvalidParameter, ServiceError
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.account import Account
from vendors.errors import Garbled, Refused, Unreachable, VendorError
from vendors.hosts.replicate import NewPrediction, ReplicateHost
from vendors.hosts.replicate_signature import is_signed, key_bytes
from vendors.http.transport import VendorHttp
from vendors.sandbox.faults import Fault, key_of
from vendors.sandbox.replicate import OFFICIAL, UNKNOWN_VERSION, WEBHOOK_KEY
from vendors.sandbox.server import Running
from vendors.sinks.webhook import signature

VERSION = "a" * 64
LONG_MS = 600_000

Open = Callable[..., ReplicateHost]


@pytest.fixture
def host(http: VendorHttp, sandbox: Running) -> Open:
    def opened(key: str = "k1") -> ReplicateHost:
        account = Account("main", "model_host", f"{sandbox.url}/replicate/v1", SecretStr(key))
        return ReplicateHost(http, account, None)

    return opened


def new(*, model: str | None = None, version: str = VERSION, **given_input: Any) -> NewPrediction:
    body = {"input": {"prompt": "Alice", **given_input}}
    return NewPrediction(body if model else {"version": version, **body}, model)


async def test_prediction_is_created_read_and_has_an_output(host: Open, sandbox: Running):
    created = await host().create(new(output=["a", 1]), webhook=None)
    assert (created.status, created.output, created.version) == ("starting", None, VERSION)
    read = await host().get(created.id)
    assert (read.status, read.output, read.error) == ("succeeded", ["a", 1], "")
    (call, *_) = sandbox.bill.since(0)
    assert call.asked == {
        "version": VERSION,
        "input": {"prompt": "Alice", "output": ["a", 1]},
        "model": "sandbox/model",
    }


async def test_running_prediction_is_canceled_and_an_ended_one_stays_as_it_is(host: Open):
    running = await host().create(new(after_ms=LONG_MS), webhook=None)
    assert (await host().get(running.id)).status == "processing"
    assert (await host().cancel(running.id)).status == "canceled"
    ended = await host().create(new(fail="out of memory"), webhook=None)
    found = await host().cancel(ended.id)
    assert (found.status, found.error) == ("failed", "out of memory")
    aborted = await host().create(new(aborts=True), webhook=None)
    assert (await host().get(aborted.id)).status == "canceled"


async def test_official_model_is_called_by_its_name_and_another_by_its_latest_version(host: Open, sandbox: Running):
    assert (await host().create(new(model=OFFICIAL), webhook=None)).model == OFFICIAL
    created = await host().create(new(model="someone/else"), webhook=None)
    assert created.model == "someone/else"
    assert [call.stage for call in sandbox.bill.since(0)] == ["predictions", "predictions", "models", "predictions"]
    with pytest.raises(InvalidParameter):
        await host().create(new(model="someone/missing"), webhook=None)


@pytest.mark.parametrize(
    ("key", "given", "error"),
    [
        ("wrong", {}, ConfigInvalid),
        (key_of(fault="out_of_quota"), {}, ConfigInvalid),
        ("k1", {"version": UNKNOWN_VERSION}, InvalidParameter),
        ("k1", {"after_ms": "soon"}, InvalidParameter),
        (key_of(fault="rate_limited"), {}, Refused),
        (key_of(fault="server_error"), {}, Refused),
        (key_of(fault="refuse"), {}, Unreachable),
        (key_of(fault="cut_mid_stream"), {}, Garbled),
        (key_of(fault="malformed_frame"), {}, Garbled),
        (key_of(fault="wrong_content_type"), {}, Garbled),
        (key_of(fault="empty_answer"), {}, Garbled),
        (key_of(fault="redirect"), {}, Refused),
    ],
)
async def test_refusals_say_who_has_to_change_something(
    host: Open, key: str, given: dict[str, Any], error: type[ServiceError]
):
    with pytest.raises(ServiceError) as raised:
        await host(key).create(new(**given), webhook=None)
    assert isinstance(raised.value, error)
    assert isinstance(raised.value, VendorError) == issubclass(error, VendorError)


async def test_creation_is_repeated_only_if_the_host_was_too_busy_for_it(host: Open, sandbox: Running):
    busy = key_of(fault=Fault.RATE_LIMITED, times=1, retry_after_s=0.01)
    assert (await host(busy).create(new(), webhook=None)).status == "starting"
    broken = key_of(fault=Fault.UNAVAILABLE, times=1, retry_after_s=0.01)
    with pytest.raises(Refused):
        await host(broken).create(new(), webhook=None)
    assert [call.fault for call in sandbox.bill.since(0)] == ["rate_limited", None, "unavailable"]


async def test_prediction_whose_response_was_lost_is_found_by_its_input(host: Open):
    began = utc_now()
    lossy = host(key_of(fault=Fault.CUT_MID_STREAM, times=1))
    for wanted in (new(prompt="lost"), new(prompt="other")):
        try:
            await lossy.create(wanted, webhook=None)
        except VendorError:
            continue
    found = await lossy.created_since(began - timedelta(seconds=1))
    assert [prediction.input["prompt"] for prediction in found if new(prompt="lost").is_that_of(prediction)] == [
        "lost"
    ]
    assert not any(new(prompt="lost", version="b" * 64).is_that_of(prediction) for prediction in found)
    assert await host().created_since(began) == []  # Of another account.


async def test_webhook_is_signed_with_the_key_of_the_account(host: Open, sandbox: Running):
    assert key_bytes(await host().webhook_key()) == WEBHOOK_KEY
    await host().create(new(), webhook=f"{sandbox.url}/nowhere")
    await until(lambda: sandbox.sandbox.deliveries.log)


@given(body=st.binary(max_size=50), t=st.integers(0, 10**11), key=st.binary(min_size=1, max_size=64))
def test_only_a_fresh_signature_of_the_same_bytes_is_accepted(body: bytes, t: int, key: bytes):
    def signed(**changed: Any) -> bool:
        right = {
            "body": body, "key": key, "delivery_id": "msg_1", "timestamp": str(t),
            "signatures": f"v1,AAAA {signature(key, 'msg_1', body, t=t)}", "now": t + 299,
        }  # fmt: skip
        return is_signed(**(right | changed))

    assert signed()
    assert not signed(body=body + b"x")
    assert not signed(key=key + b"x")
    assert not signed(delivery_id="msg_2")
    assert not signed(timestamp=str(t + 1))
    assert not signed(timestamp="²")
    assert not signed(now=t + 301)
    assert not signed(signatures="")
