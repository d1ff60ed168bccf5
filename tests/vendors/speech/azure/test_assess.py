"""Pronunciation assessment of vendor A: the request, and the phrases that form one result."""

import asyncio
from typing import Any

import pytest

from streams.wire.codec import loads
from streams.wire.errors import InvalidParameter
from tests.vendors.http.upstream import Upstream
from tests.vendors.sandbox_calls import leave_waiting
from tests.vendors.speech.azure.clients import ask, assess, assessor, items_of, sandbox_assessor, words
from tests.vendors.speech.azure.inputs import PAUSE, REFERENCE, TONE
from tests.vendors.speech.azure.service import REFUSED, SECOND, Service, buffered, playing
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.sandbox.server import Running


async def test_all_options_are_sent(http: VendorHttp, upstream: Upstream):
    contexts: list[dict[str, Any]] = []

    async def play(service: Service) -> None:
        contexts.append(loads((await service.begin_turn()).body))
        await service.samples(1 << 30)
        await service.say("turn.end", {})

    upstream.respond_with(playing(play))
    request = ask(
        language="en-gb",
        grading_system="FivePoint",
        granularity="Word",
        enable_miscue=True,
        enable_prosody_assessment=True,
    )
    await assess(assessor(http, upstream.url, phoneme_alphabet="IPA"), buffered(TONE), request)

    (seen,) = upstream.seen
    assert (seen.path, seen.query["language"], seen.query["format"]) == (
        "/stt/speech/universal/v2",
        "en-GB",
        "detailed",
    )
    assert contexts == [
        {
            "phraseDetection": {
                "mode": "Conversation",
                "language": "en-GB",
                "enrichment": {
                    "pronunciationAssessment": {
                        "referenceText": REFERENCE,
                        "gradingSystem": "FivePoint",
                        "granularity": "Word",
                        "dimension": "Comprehensive",
                        "enableMiscue": True,
                        "enableProsodyAssessment": True,
                        "phonemeAlphabet": "IPA",
                    }
                },
            },
            "phraseOutput": {
                "format": "Detailed",
                "detailed": {"options": ["WordTimings", "PronunciationAssessment", "SNR"]},
            },
        }
    ]


async def test_the_result_of_one_phrase_is_that_of_the_vendor(http: VendorHttp, sandbox: Running):
    result = await assess(sandbox_assessor(http, sandbox), buffered(TONE), ask(enable_prosody_assessment=True))

    assert result.text == REFERENCE
    raw = result.raw
    assert (raw["RecognitionStatus"], raw["Offset"], raw["Duration"], len(raw["Id"])) == ("Success", 0, SECOND, 32)
    (best,) = raw["NBest"]
    assert best["Confidence"] == 0.97
    assert set(best["PronunciationAssessment"]) == {
        "AccuracyScore", "FluencyScore", "CompletenessScore", "ProsodyScore", "PronScore",
    }  # fmt: skip
    assert words(result) == [("good", "None"), ("morning", "None"), ("my", "None"), ("friend", "None")]
    assert best["Words"][0]["Phonemes"][0].keys() == {"Phoneme", "PronunciationAssessment", "Offset", "Duration"}
    entry = await sandbox.bill.wait()
    assert (entry.stage, entry.how, round(entry.billed["seconds"], 3)) == ("assess", "done", 1)


async def test_miscues_are_found_across_phrases(http: VendorHttp, sandbox: Running):
    client = sandbox_assessor(http, sandbox, text="good uh morning|friend")
    audio = buffered(TONE, PAUSE, TONE)

    result = await assess(client, audio, ask(enable_miscue=True))

    assert result.text == "good uh morning friend"
    assert words(result) == [
        ("good", "None"), ("uh", "Insertion"), ("morning", "None"), ("my", "Omission"), ("friend", "None"),
    ]  # fmt: skip
    assert (result.raw["Offset"], result.raw["Duration"]) == (0, 3 * SECOND)
    assert result.raw["NBest"][0]["PronunciationAssessment"]["CompletenessScore"] == 75.0
    assert "Omission" not in [error for _, error in words(await assess(client, audio, ask()))]


@pytest.mark.parametrize(
    ("granularity", "parts"),
    [("Phoneme", {"Syllables", "Phonemes"}), ("Word", set()), ("FullText", None)],
)
async def test_granularity_selects_what_is_graded(
    http: VendorHttp, sandbox: Running, granularity: str, parts: set[str] | None
):
    for audio in (buffered(TONE), buffered(TONE, PAUSE, TONE)):  # One phrase, and two phrases that are merged.
        result = await assess(
            sandbox_assessor(http, sandbox, text="good morning|my friend"),
            audio,
            ask(granularity=granularity, enable_miscue=True),
        )
        (best,) = result.raw["NBest"]
        assert set(best["PronunciationAssessment"]) >= {"AccuracyScore", "FluencyScore", "PronScore"}
        if parts is None:
            assert "Words" not in best
        else:
            assert all(word.keys() & {"Syllables", "Phonemes"} == parts for word in best["Words"])


async def test_scores_of_five_points_are_at_most_five(http: VendorHttp, sandbox: Running):
    for audio in (buffered(TONE), buffered(TONE, PAUSE, TONE)):
        result = await assess(
            sandbox_assessor(http, sandbox, text="good morning|my friend"), audio, ask(grading_system="FivePoint")
        )
        assert all(0 < score <= 5 for score in result.raw["NBest"][0]["PronunciationAssessment"].values())


async def test_no_recognized_words_are_an_empty_text(http: VendorHttp, sandbox: Running):
    result = await assess(sandbox_assessor(http, sandbox), buffered(PAUSE), ask())

    assert result.text == ""
    assert result.raw["RecognitionStatus"] == "EndOfDictation"


async def test_times_count_from_the_start_of_the_input_even_after_an_early_end(
    http: VendorHttp, upstream: Upstream
):
    def phrase(word: str, begin: int) -> dict[str, Any]:
        grade = {"AccuracyScore": 90.0, "ErrorType": "None"}
        times = {"Offset": begin * SECOND, "Duration": SECOND}
        left_out = {
            "Word": "x",
            "Offset": 0,
            "Duration": 0,
            "PronunciationAssessment": grade | {"ErrorType": "Omission"},
        }
        said = {"Word": word, **times, "PronunciationAssessment": grade, "Phonemes": [{"Phoneme": "a", **times}]}
        best = {
            "Lexical": word,
            "Display": word,
            "PronunciationAssessment": {"AccuracyScore": 90.0},
            "Words": [said, left_out],
        }
        return {"RecognitionStatus": "Success", **times, "DisplayText": word, "NBest": [best]}

    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(2 * len(TONE))
        await service.say("speech.phrase", phrase("one", 1))
        await service.say("turn.end", {})
        await service.begin_turn()
        assert await service.samples(1 << 30) == TONE
        await service.say("speech.phrase", phrase("two", 0))
        await service.say("turn.end", {})

    class Slow:
        """Ends after the first turn, which is too early."""

        def __init__(self) -> None:
            self.turns = 0

        async def read(self):
            self.turns += 1
            yield TONE * 2
            if self.turns == 1:
                await asyncio.Event().wait()
            yield TONE

    upstream.respond_with(playing(play))
    result = await assess(assessor(http, upstream.url), Slow(), ask("one two"))

    assert [(said["Word"], said["Offset"] // SECOND) for said in result.raw["NBest"][0]["Words"]] == [
        ("one", 1), ("x", 0), ("two", 2), ("x", 0),
    ]  # fmt: skip
    assert result.raw["NBest"][0]["Words"][2]["Phonemes"][0]["Offset"] == 2 * SECOND
    assert (result.raw["Offset"], result.raw["Duration"]) == (SECOND, 2 * SECOND)


@pytest.mark.parametrize(
    "best",
    [None, [], [5], [{"Words": [5]}], [{"Words": [{"Word": "hi"}]}]],
)
async def test_malformed_results_are_garbled(http: VendorHttp, upstream: Upstream, best: Any):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(1 << 30)
        for begin in (0, 1):
            times = {"Offset": begin * SECOND, "Duration": SECOND}
            reported = {"RecognitionStatus": "Success", "DisplayText": "hi", **times, "NBest": best}
            await service.say("speech.phrase", reported)
        await service.say("turn.end", {})

    upstream.respond_with(playing(play))

    with pytest.raises(Garbled, match="sent a malformed assessment"):
        await assess(assessor(http, upstream.url), buffered(TONE), ask(enable_miscue=True))


def test_wrong_option_is_named():
    with pytest.raises(InvalidParameter, match="phoneme_alphabet"):
        assessor(None, "http://127.0.0.1", phoneme_alphabet="morse")


@pytest.mark.parametrize("fault", REFUSED)
async def test_refusal_is_reported_with_its_status(http: VendorHttp, sandbox: Running, fault: str):
    with pytest.raises(Refused) as refused:
        await assess(sandbox_assessor(http, sandbox, fault=fault, retry_after_s=0.01), buffered(TONE), ask())

    assert (refused.value.vendor_status, refused.value.retryable) == REFUSED[fault]


@pytest.mark.parametrize(
    ("fault", "position", "kind"),
    [
        ("cut_mid_stream", "before", Garbled),
        ("cut_mid_stream", "1000", Garbled),
        ("malformed_frame", "after", Garbled),
        ("error_inside_200", "before", Refused),
        ("error_inside_200", "after", Refused),
    ],
)
async def test_a_failed_turn_never_has_a_result(
    http: VendorHttp, sandbox: Running, fault: str, position: str, kind: type[VendorError]
):
    with pytest.raises(kind) as failed:
        await items_of(
            sandbox_assessor(http, sandbox, fault=fault, position=position), buffered(TONE, PAUSE, TONE), ask()
        )

    assert failed.value.vendor == "vendor_a_pronunciation"


async def test_leaving_the_block_closes_the_call(http: VendorHttp, sandbox: Running):
    stalled = items_of(sandbox_assessor(http, sandbox, fault="stall_mid_stream"), buffered(TONE), ask())
    await leave_waiting(stalled, sandbox)

    async with asyncio.timeout(1):
        entry = await sandbox.bill.wait()
    assert entry.how == "closed_by_client"
