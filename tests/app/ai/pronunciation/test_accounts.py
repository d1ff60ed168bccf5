"""The accounts of a pronunciation strategy are tried in order until one has graded all of the audio."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.pronunciation.assessments import (
    HANGS,
    PATH,
    REFERENCE,
    assessed,
    assessment_accounts,
    attempts,
    called,
    calls,
    closed,
    coded,
    params,
    refused,
)
from tests.app.ai.sandbox_accounts import account
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import silence, tone
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def test_missing_strategy_is_not_found(talk: Talk) -> None:
    got = await refused(talk, params("nobody") + coded(tone(0.5)))
    assert got == (404, "item_not_found: pronunciation strategy nobody does not exist")


async def test_error_for_a_strategy_without_a_usable_account_names_config_and_field(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    value = {"accounts": [{"account": "chat"}, {"account": "nowhere"}]}
    await server.services.configs.put("default", "pronunciation", "one", value, author="test", origin=COMMAND)
    await account(server, sandbox, "chat", "vendor_b_llm")
    got = await refused(talk, params() + coded(tone(0.5)))
    assert got == (
        422,
        "config_invalid: vendor_accounts chat: platform vendor_b_llm offers no assessment",
    )


async def test_broken_account_among_usable_ones_is_a_failed_attempt(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await account(server, sandbox, "sound", "vendor_a_audio")
    value = {"accounts": [{"account": "nowhere"}, {"account": "sound"}]}
    await server.services.configs.put("default", "pronunciation", "one", value, author="test", origin=COMMAND)
    await assessed(talk, params() + coded(tone(0.5)))
    assert [row[:3] for row in await attempts(server)] == [
        ("nowhere", "assess", "failed"),
        ("sound", "assess", "won"),
    ]


@pytest.mark.parametrize(
    "key",
    [
        key_of(fault="unauthorized"),
        key_of(fault="unavailable", retry_after_s=0.01),
        key_of(fault="cut_mid_stream", position="before"),
        key_of(fault="cut_mid_stream", position=1_000),
        key_of(fault="malformed_frame", position="after"),
        key_of(fault="error_inside_200", position="after"),
        key_of(**HANGS),
    ],
)
async def test_next_account_assesses_the_whole_audio_when_one_fails(
    talk: Talk, server: Server, sandbox: Running, key: str
) -> None:
    waits = {"first_output_s": 0.2}
    await assessment_accounts(server, sandbox, key, "sandbox", waits=waits)
    answer = await assessed(talk, params() + coded(tone(0.5) + silence(0.6) + tone(0.5)))
    assert answer["text"].startswith(REFERENCE)
    assert [row[:3] for row in await attempts(server)] == [
        ("first", "assess", "failed"),
        ("second", "assess", "won"),
    ]
    assert calls(sandbox)[-1].billed["seconds"] == pytest.approx(1.6)


async def test_an_early_failure_leaves_the_whole_audio_to_the_next_account(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await assessment_accounts(server, sandbox, key_of(fault="unauthorized"), "sandbox")

    async def reading() -> AsyncIterator[bytes]:
        yield params()
        yield coded(tone(0.3))
        await called(sandbox)
        yield coded(tone(0.6))

    await assessed(talk, reading())
    assert calls(sandbox)[-1].billed["seconds"] == pytest.approx(0.9)


async def test_error_lists_each_account_if_all_fail(talk: Talk, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox, key_of(fault="unauthorized"), key_of(fault="cut_mid_stream"))
    async with talk.post(PATH, data=params() + coded(tone(0.5))) as response:
        assert response.status == 502
        assert response.headers["X-Service-Stream-Id"]
        error = (await response.json())["error"]
    assert error["error_type"] == "backend unavailable"
    assert error["message"] == "backend unavailable: no account could assess the audio"
    assert error["extra"]["retryable"] is True
    reported = error["extra"]["attempts"]
    assert [(one["strategy"], one["stage"], one["error_type"]) for one in reported] == [
        ("first", "assess", "backend unavailable"),
        ("second", "assess", "backend unavailable"),
    ]
    assert all(one["message"] and isinstance(one["elapsed_ms"], int) for one in reported)
    assert [row[:3] for row in await attempts(server)] == [
        ("first", "assess", "failed"),
        ("second", "assess", "failed"),
    ]


async def test_client_that_still_uploads_receives_the_error_of_all_accounts(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await assessment_accounts(server, sandbox, key_of(fault="unauthorized"))
    reported = asyncio.Event()

    async def reading() -> AsyncIterator[bytes]:
        yield params()
        yield coded(tone(0.3))
        await reported.wait()
        for _ in range(20):
            yield coded(tone(0.3))

    async with asyncio.timeout(5), talk.post(PATH, data=reading()) as response:
        assert response.status == 502
        reported.set()


async def test_timeout_of_the_result_starts_at_the_end_of_the_audio_and_grows_with_its_length(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await assessment_accounts(server, sandbox, key_of(delay_ms=1_000), waits={"first_output_s": 0.2})
    assert (await refused(talk, params() + coded(tone(0.3))))[0] == 502

    async def reading() -> AsyncIterator[bytes]:
        yield params()
        for _ in range(4):
            yield coded(tone(0.51))
            await asyncio.sleep(0.1)  # Reading takes longer than the vendor may take.

    assert (await assessed(talk, reading()))["text"] == REFERENCE


async def test_late_account_is_hedged(talk: Talk, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox, key_of(**HANGS), "sandbox", hedge_after_ms=50)
    await assessed(talk, params() + coded(tone(0.5)))
    assert (await closed(sandbox)).how in {"closed_by_client", "done"}
    outcomes = {row[0]: row[2] for row in await attempts(server)}
    assert outcomes == {"first": "hedged", "second": "won"}
