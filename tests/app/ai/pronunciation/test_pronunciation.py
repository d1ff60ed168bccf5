"""Assessments are graded while the audio arrives. They have one reply, but otherwise count as streams."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from streams.tasks import background
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
    limits,
    params,
    refused,
)
from tests.app.callers import token
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import silence, tone
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def test_reply_contains_text_raw_result_price_and_strategy(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await assessment_accounts(server, sandbox, price={"input": 0.25})
    answer = await assessed(talk, params(enable_prosody_assessment=True) + coded(tone(1.2)))
    assert answer.keys() == {"text", "raw_data", "unit_price", "strategy"}
    assert (answer["text"], answer["strategy"]) == (REFERENCE, "one")
    raw = answer["raw_data"]
    assert {"Duration", "Id", "NBest"} <= raw.keys()
    (best,) = raw["NBest"]
    assert "Confidence" in best
    scores = {"AccuracyScore", "CompletenessScore", "FluencyScore", "PronScore", "ProsodyScore"}
    assert best["PronunciationAssessment"].keys() == scores
    assert answer["unit_price"] == {
        "input_per_price": 0.25,
        "output_per_price": 0,
        "input_token": 2,
        "output_token": 0,
    }
    assert await attempts(server) == [("first", "assess", "won", 2, Decimal("0.5"))]
    (call,) = calls(sandbox)
    assert (call.how, round(call.billed["seconds"], 3)) == ("done", 1.2)


async def test_all_options_reach_the_vendor(talk: Talk, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox, options={"phoneme_alphabet": "IPA"})
    await assessed(
        talk,
        params(
            language="en-GB",
            grading_system="FivePoint",
            granularity="Word",
            enable_miscue=True,
            enable_prosody_assessment=True,
        )
        + coded(tone(0.5)),
    )
    await assessed(talk, params() + coded(tone(0.5)))
    requested = [call.asked["context"]["phraseDetection"] for call in calls(sandbox)]
    assert [one["language"] for one in requested] == ["en-GB", "en-US"]
    graded = [one["enrichment"]["pronunciationAssessment"] for one in requested]
    assert graded[0] == {
        "referenceText": REFERENCE,
        "gradingSystem": "FivePoint",
        "granularity": "Word",
        "dimension": "Comprehensive",
        "enableMiscue": True,
        "enableProsodyAssessment": True,
        "phonemeAlphabet": "IPA",
    }
    assert graded[1] == {
        **graded[0],
        "gradingSystem": "HundredMark",
        "granularity": "Phoneme",
        "enableMiscue": False,
        "enableProsodyAssessment": False,
        "nBestPhonemeCount": 3,
    }


async def test_the_result_has_the_phonemes_that_were_heard(talk: Talk, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox, key_of(text="good evening"))
    answer = await assessed(talk, params(reference_text="good morning") + coded(tone(1)))
    words = answer["raw_data"]["NBest"][0]["Words"]
    heard = {
        word["Word"]: word["Phonemes"][0]["PronunciationAssessment"]["NBestPhonemes"][0]["Phoneme"]
        for word in words
    }
    assert heard == {"good": "g", "evening": "e1"}


async def test_miscues_are_found_across_pauses(talk: Talk, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox, key_of(text="good uh morning|friend"))
    audio = tone(1) + silence(1) + tone(1)
    answer = await assessed(talk, params(enable_miscue=True) + coded(audio))
    words = answer["raw_data"]["NBest"][0]["Words"]
    reported = [(word["Word"], word["PronunciationAssessment"]["ErrorType"]) for word in words]
    assert reported == [
        ("good", "None"), ("uh", "Insertion"), ("morning", "None"), ("my", "Omission"), ("friend", "None"),
    ]  # fmt: skip


async def test_the_vendor_is_called_while_the_user_still_reads_aloud(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await assessment_accounts(server, sandbox)

    async def reading() -> AsyncIterator[bytes]:
        yield params()
        yield coded(silence(0.6))
        yield coded(tone(0.3))
        assert (await called(sandbox)).ended is None
        yield coded(tone(0.6))

    await assessed(talk, reading())
    (call,) = calls(sandbox)
    assert round(call.billed["seconds"], 3) == 1.5  # Includes the silence, so that times count from its start.


@pytest.mark.parametrize("uploaded", [False, True])
async def test_a_disconnected_client_closes_the_vendor_call(
    talk: Talk, server: Server, sandbox: Running, *, uploaded: bool
) -> None:
    await assessment_accounts(server, sandbox, key_of(fault="stall_mid_stream"))

    async def reading() -> AsyncIterator[bytes]:
        yield params() + coded(tone(0.5))
        if not uploaded:
            await asyncio.Event().wait()

    async def ask() -> None:
        async with talk.post(PATH, data=reading()):
            raise AssertionError("nothing is answered")

    async with background(ask()):
        await called(sandbox)
        if uploaded:  # The result is sent at the end of the audio.
            await asyncio.wait_for(sandbox.bill.wait(lambda call: call.outputs == 1), 5)
    assert (await closed(sandbox)).how == "closed_by_client"
    await asyncio.wait_for(server.services.supervisor.idle(), 1)
    assert [row[:4] for row in await attempts(server)] == [("first", "assess", "canceled", 1)]


async def test_stream_that_exceeds_its_time_is_ended(talk: Talk, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox, key_of(**HANGS))
    await limits(server, stream_s=1)
    got = await refused(talk, params() + coded(tone(0.5)))
    assert got == (502, "backend unavailable: the stream lasted too long")
    assert (await closed(sandbox)).how == "closed_by_client"


async def test_assessments_count_as_streams_in_admission_and_drain(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await assessment_accounts(server, sandbox, key_of(**HANGS))
    await limits(server, streams_per_user=1)

    async def second() -> AsyncIterator[bytes]:
        yield params()
        yield coded(tone(0.5))
        await called(sandbox)
        assert await refused(talk, params() + coded(tone(0.5))) == (
            429,
            "api_rate_limit: at most 1 streams at once",
        )
        await server.services.supervisor.drain(0)

    async with asyncio.timeout(10), talk.post(PATH, data=second()) as response:
        assert response.status == 503
        assert response.headers["Retry-After"] == "1"
        error = (await response.json())["error"]
    assert error["message"] == "backend unavailable: the server is draining"
    assert error["extra"]["retryable"] is True
    got = await refused(talk, params() + coded(tone(0.5)))
    assert got == (503, "backend unavailable: the server is draining")


async def test_an_app_server_assesses_for_an_existing_user(talk: Talk, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox)
    http, path = server.http, "/bp/server/user/{}/ai/audio/pronunciation"
    body = params() + coded(tone(0.5))
    async with http.post(server.url + path.format(talk.uid), data=body, headers=token()) as response:
        assert response.status == 200
        assert (await response.json())["text"] == REFERENCE
    async with http.post(server.url + path.format("0" * 32), data=body, headers=token()) as response:
        assert response.status == 404
    async with http.post(server.url + path.format(talk.uid), data=body) as response:
        assert response.status == 401
