"""The sandbox server: its bill, switches and errors."""

import asyncio
import ssl

import aiohttp
import pytest

from streams.wire.codec import loads
from tests.calendar.clock import epoch_ms
from tests.vendors.sandbox.requests import CHAT, SandboxClient, chat
from vendors.sandbox.server import Running


async def test_the_bill_lists_each_call_with_its_cost(ask: SandboxClient):
    begun = epoch_ms()
    headers = {"Authorization": "Bearer sandbox,name=me", "X-Request-Id": "request-1"}
    async with ask.http.post(f"{ask.running.url}{CHAT}", json=chat(), headers=headers) as response:
        await response.read()
    async with ask.get("/_sandbox/calls") as response:
        (call,) = (await response.json())["calls"]

    assert begun <= call.pop("begun") <= call.pop("ended") <= epoch_ms()
    assert call == {
        "id": 1,
        "vendor": "openai",
        "stage": "llm",
        "key": "me",
        "fault": None,
        "how": "done",
        "closed_ms": None,
        "outputs": 5,
        "billed": {"input_tokens": 3, "output_tokens": 5},
        "asked": {"model": "gpt-4o", "stream": True},
        "request_id": "request-1",
    }


async def test_the_bill_can_be_filtered_by_key_and_cleared(ask: SandboxClient):
    for name in ("a", "b", "a"):
        async with ask.post(CHAT, chat(), f"sandbox,name={name}") as response:
            await response.read()

    async def ids(query: str) -> list[int]:
        async with ask.get(f"/_sandbox/calls{query}") as response:
            return [call["id"] for call in (await response.json())["calls"]]

    assert await ids("") == [1, 2, 3]
    assert await ids("?since=1") == [2, 3]
    assert await ids("?key=a") == [1, 3]
    async with ask.http.delete(f"{ask.running.url}/_sandbox/calls") as response:
        assert response.status == 200
    assert await ids("") == []
    async with ask.get("/_sandbox/calls?since=x") as response:
        assert response.status == 400


async def test_an_open_call_has_no_end_and_a_cut_one_is_billed_for_its_output(ask: SandboxClient):
    async with ask.post(CHAT, chat(), "sandbox,fault=stall_mid_stream,position=3"):
        await ask.running.bill.wait(lambda entry: entry.outputs == 3)
        async with ask.get("/_sandbox/calls") as response:
            (open_call,) = (await response.json())["calls"]
    left_ms = epoch_ms()
    entry = await ask.running.bill.wait()

    assert (open_call["ended"], open_call["how"], open_call["closed_ms"]) == (None, None, None)
    assert entry.how == "closed_by_client"
    assert entry.closed_ms is not None
    assert entry.closed_ms - left_ms < 1_000
    assert entry.billed == {"input_tokens": 3, "output_tokens": 3}


async def test_a_switched_fault_applies_to_keys_without_a_fault(ask: SandboxClient):
    async def status(key: str = "sandbox") -> int:
        async with ask.post(CHAT, chat(), key) as response:
            await response.read()
            return response.status

    async with ask.post("/_sandbox/faults", {"vendor": "openai", "fault": "server_error"}) as response:
        assert response.status == 200
    async with ask.get("/_sandbox/faults") as response:
        assert await response.json() == {"openai": {"fault": "server_error"}}
    assert await status() == 500
    assert await status("sk-any") == 500
    assert await status("sandbox,fault=unavailable") == 503
    async with ask.http.delete(f"{ask.running.url}/_sandbox/faults?vendor=openai"):
        pass
    assert await status() == 200


async def test_switches_accept_options_and_can_be_cleared(ask: SandboxClient):
    for vendor in ("openai", "azure"):
        key_options = {"vendor": vendor, "fault": "server_error", "times": 1}
        async with ask.post("/_sandbox/faults", key_options) as response:
            assert response.status == 200

    answers = []
    for _ in range(2):
        async with ask.post(CHAT, chat(stream=False)) as response:
            answers.append(response.status)
    async with ask.http.delete(f"{ask.running.url}/_sandbox/faults"):
        pass

    assert answers == [500, 200]
    assert ask.running.sandbox.switches == {}


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"vendor": "openai"},
        {"vendor": 1, "fault": "server_error"},
        {"vendor": "openai", "fault": "x"},
        b"{",
    ],
)
async def test_invalid_switches_are_refused(ask: SandboxClient, body: object):
    async with ask.post("/_sandbox/faults", body) as response:
        assert response.status == 400
        assert (await response.json())["error"]["type"] == "sandbox"


@pytest.mark.parametrize("key", ["wrong", ""])
async def test_wrong_keys_are_refused_like_the_vendor_does_without_billing(ask: SandboxClient, key: str):
    async with ask.post(CHAT, chat(), key) as response:
        assert response.status == 401
        assert (await response.json())["error"]["code"] == "invalid_api_key"
    assert list(ask.running.bill.since()) == []


async def test_misspelt_keys_are_reported(ask: SandboxClient):
    async with ask.post(CHAT, chat(), "sandbox,fualt=server_error") as response:
        assert response.status == 400
        assert "fualt is not a field" in (await response.json())["error"]["message"]


async def test_other_paths_and_methods_answer_in_json(ask: SandboxClient):
    for path, status in (("/openai/v1/files", 404), (CHAT, 405)):
        async with ask.get(path) as response:
            assert response.status == status
            assert path in (await response.json())["error"]["message"]


async def test_the_delay_precedes_the_first_output_and_the_pace_separates_outputs(ask: SandboxClient):
    clock = asyncio.get_running_loop().time
    begun = clock()
    async with ask.post(CHAT, chat(), "sandbox,delay_ms=600,pace_ms=30") as response:
        assert clock() - begun < 0.59
        async for line in response.content:
            if b"word1" in line:
                break
        first = clock() - begun
        await response.read()
        last = clock() - begun

    assert first > 0.59
    assert last > 0.59 + 0.11


async def test_slow_drip_before_the_first_output_sends_empty_frames(ask: SandboxClient, sandbox: Running):
    frames = []
    async with ask.post(CHAT, chat(), "sandbox,fault=slow_drip,position=before,pace_ms=1") as response:
        async for line in response.content:
            if line.startswith(b"data: "):
                frames.append(loads(line.removeprefix(b"data: ")))
            if len(frames) == 9:
                break
        response.close()

    assert not any(frame["choices"][0]["delta"]["content"] for frame in frames)
    entry = await asyncio.wait_for(sandbox.bill.wait(), 5)
    assert (entry.how, entry.outputs, entry.billed["output_tokens"]) == ("closed_by_client", 0, 0)


async def test_broken_handshake_is_an_error_of_tls(ask: SandboxClient):
    with pytest.raises(aiohttp.ClientConnectorError) as error:
        async with ask.http.get(ask.running.broken_tls_url):
            pass

    assert isinstance(error.value.os_error, ssl.SSLError)
