"""The local pronunciation assessor grades texts that a local voice reads aloud."""

import asyncio
import os
import random
import signal
import struct
from collections.abc import AsyncIterator

import pytest
from aiohttp import FormData

from streams.audio.audio import wav_header
from tests.vendors.local.assessments import (
    asking,
    assessed,
    check_times,
    errors,
    form,
    graded,
    scores,
    sound,
    words,
)
from tests.vendors.local.conftest import Local, refusal
from tests.vendors.local.spoken_audio import REFERENCE, Reader, reader
from vendors.local.engines.engines import Engines
from vendors.local.engines.faults import Fault
from vendors.local.engines.pronunciation import Pronunciation
from vendors.local.engines.protocols import TranscribedSegment, Transcription
from vendors.protocols import AssessmentRequest

__all__ = ["reader"]

SECOND = 10_000_000
OTHER = "My grandmother sells seven yellow umbrellas every summer."


async def test_a_well_read_text_has_a_complete_result(local: Local, reader: Reader) -> None:
    pcm = await reader(REFERENCE)
    answer = await graded(local, reader)

    assert answer["text"].lower().strip(".").split()[-2:] == ["lazy", "dog"]
    assert answer["usage"] == {"type": "duration", "seconds": -(-len(pcm) // 32_000)}
    raw = answer["raw_data"]
    assert (raw["RecognitionStatus"], len(raw["Id"]), raw["DisplayText"]) == ("Success", 32, answer["text"])
    assert 0 < raw["Duration"] <= len(pcm) / 32_000 * SECOND + SECOND
    (best,) = raw["NBest"]
    assert 0.3 < best["Confidence"] <= 1
    assert best["Lexical"] == REFERENCE.lower().strip(".")
    assert {"ITN", "MaskedITN", "Display", "Words", "PronunciationAssessment"} < best.keys()
    assert set(scores(answer)) == {"AccuracyScore", "FluencyScore", "CompletenessScore", "PronScore"}
    assert all(85 <= score <= 100 for score in scores(answer).values())
    assert errors(answer) == sound(REFERENCE)


async def test_words_syllables_and_phonemes_have_times(local: Local, reader: Reader) -> None:
    pcm = await reader(REFERENCE)
    reported = words(await graded(local, reader))

    check_times(reported, len(pcm) / 32_000 * SECOND)
    for word in reported:
        for part in (*word["Syllables"], *word["Phonemes"]):
            assert 0 <= part["PronunciationAssessment"]["AccuracyScore"] <= 100
    lazy = reported[-2]
    assert [phoneme["Phoneme"] for phoneme in lazy["Phonemes"]] == ["l", "ey", "z", "iy"]
    assert [syllable["Syllable"] for syllable in lazy["Syllables"]] == ["ley", "ziy"]


@pytest.mark.soak
async def test_reading_another_text_scores_clearly_lower(local: Local, reader: Reader) -> None:
    right = scores(await graded(local, reader))
    wrong = scores(await assessed(local, await reader(OTHER)))

    assert wrong["AccuracyScore"] < right["AccuracyScore"] - 40
    assert wrong["CompletenessScore"] < right["CompletenessScore"] - 40
    assert wrong["PronScore"] < right["PronScore"] - 20


async def test_a_word_that_is_left_out_is_an_omission(local: Local, reader: Reader) -> None:
    pcm = await reader("The quick fox jumps over the lazy dog.")

    answer = await assessed(local, pcm, enable_miscue="true")
    assert errors(answer) == [(word, "Omission" if word == "brown" else error) for word, error in sound(REFERENCE)]
    omitted = words(answer)[2]
    assert (omitted["Offset"], omitted["Duration"], omitted["Phonemes"]) == (0, 0, [])
    assert omitted["PronunciationAssessment"]["AccuracyScore"] == 0
    assert scores(answer)["CompletenessScore"] == pytest.approx(100 * 8 / 9, abs=0.1)

    unasked = await assessed(local, pcm)
    assert ("brown", "Mispronunciation") in errors(unasked)
    assert {error for _, error in errors(unasked)} == {"None", "Mispronunciation"}


@pytest.mark.soak
async def test_an_added_word_is_an_insertion(local: Local, reader: Reader) -> None:
    pcm = await reader("The quick brown fox jumps over the very lazy dog.")

    answer = await assessed(local, pcm, enable_miscue="true")
    assert errors(answer) == [
        *sound("the quick brown fox jumps over the"),
        ("very", "Insertion"),
        *sound("lazy dog"),
    ]
    assert scores(answer)["CompletenessScore"] == 100

    assert errors(await assessed(local, pcm)) == sound(REFERENCE)


@pytest.mark.soak
async def test_a_replaced_word_is_a_mispronunciation_or_a_miscue(local: Local, reader: Reader) -> None:
    pcm = await reader("The quick brown cow jumps over the lazy dog.")

    assert ("fox", "Mispronunciation") in errors(await assessed(local, pcm))
    reported = errors(await assessed(local, pcm, enable_miscue="true"))
    assert ("fox", "Omission") in reported
    assert "Insertion" in dict.fromkeys(error for _, error in reported)


@pytest.mark.parametrize(
    ("granularity", "levels"),
    [("Phoneme", {"Syllables", "Phonemes"}), ("Word", set())],
)
async def test_granularity_omits_finer_units(
    local: Local, reader: Reader, granularity: str, levels: set[str]
) -> None:
    answer = await assessed(local, await reader(REFERENCE), granularity=granularity)
    assert {name for word in words(answer) for name in word} == {
        "Word", "Offset", "Duration", "PronunciationAssessment", *levels,
    }  # fmt: skip


async def test_the_granularity_full_text_has_no_words(local: Local, reader: Reader) -> None:
    answer = await assessed(local, await reader(REFERENCE), granularity="FullText")
    assert "Words" not in answer["raw_data"]["NBest"][0]
    assert scores(answer)["AccuracyScore"] > 85


@pytest.mark.soak
async def test_scores_do_not_depend_on_what_was_assessed_before(local: Local, reader: Reader) -> None:
    noise = random.Random(1)  # noqa: S311 - noise
    pcm = await reader(REFERENCE)
    noisy = [sample // 5 + noise.randrange(-1_700, 1_700) for sample in memoryview(pcm).cast("h")]
    before = words(await assessed(local, pcm))
    await assessed(local, struct.pack(f"<{len(noisy)}h", *noisy))
    assert words(await assessed(local, pcm)) == before


async def test_five_point_scores_are_a_twentieth_of_hundred_point_scores(local: Local, reader: Reader) -> None:
    five = await assessed(local, await reader(REFERENCE), grading_system="FivePoint")
    hundred = await graded(local, reader)
    for name, score in scores(hundred).items():
        assert scores(five)[name] == pytest.approx(score / 20, abs=0.06)
    for word, same in zip(words(five), words(hundred), strict=True):
        assert word["PronunciationAssessment"]["AccuracyScore"] <= 5
        assert word["Phonemes"][0]["PronunciationAssessment"]["AccuracyScore"] == pytest.approx(
            same["Phonemes"][0]["PronunciationAssessment"]["AccuracyScore"] / 20, abs=0.06
        )


async def test_prosody_is_graded_on_request(local: Local, reader: Reader) -> None:
    reported = scores(await assessed(local, await reader(REFERENCE), enable_prosody_assessment="true"))
    assert set(reported) == {"AccuracyScore", "FluencyScore", "CompletenessScore", "ProsodyScore", "PronScore"}
    assert 50 <= reported["ProsodyScore"] <= 100


@pytest.mark.soak
async def test_words_missing_from_the_dictionary_are_spelt_out(local: Local, reader: Reader) -> None:
    text = "Our new product Zyntrafol costs 25 dollars in Kuala Lumpur."
    answer = await assessed(local, await reader(text), reference_text=text)
    reported = {word["Word"]: word for word in words(answer)}
    for name, phonemes in {"zyntrafol": 6, "lumpur": 5}.items():
        assert reported[name]["PronunciationAssessment"]["AccuracyScore"] > 40
        assert len(reported[name]["Phonemes"]) >= phonemes


async def test_silence_and_noise_are_recognized_as_no_words(local: Local, needs) -> None:
    needs("pocketsphinx")
    noise = random.Random(1).choices(range(-300, 300), k=48_000)  # noqa: S311 - noise
    for pcm in (bytes(96_000), struct.pack("<48000h", *noise)):
        answer = await assessed(local, pcm)
        assert answer["text"] == ""
        assert answer["usage"]["seconds"] == 3
        raw = answer["raw_data"]
        assert (raw["RecognitionStatus"], raw["Duration"], raw["NBest"]) == ("NoMatch", 3 * SECOND, [])


@pytest.mark.soak
async def test_a_long_reference_is_graded_within_the_time_limit(local: Local, reader: Reader) -> None:
    pcm = await reader(REFERENCE) + bytes(32_000) + await reader(OTHER)
    strange = "\u2d30\u2d31 \u6f22\u5b57 \U0001f98a ((( a(b c(2) </s> <sil> " + "x" * 500
    text = " ".join([REFERENCE, strange, *(f"word{number} again and again" for number in range(1_500))])
    answer = await assessed(local, pcm, reference_text=text, enable_miscue="true")
    reported = errors(answer)
    assert reported[: len(sound(REFERENCE))] == sound(REFERENCE)
    assert sum(error == "Omission" for _, error in reported) > 5_000
    assert scores(answer)["CompletenessScore"] < 5


async def test_wav_of_the_right_format_is_accepted(local: Local, reader: Reader) -> None:
    pcm = await reader(REFERENCE)
    answer = await assessed(local, wav_header(16_000, data_bytes=len(pcm)) + pcm + b"LIST\4\0\0\0junk")
    assert errors(answer) == sound(REFERENCE)


@pytest.mark.parametrize(
    ("audio", "fields", "reported"),
    [
        (bytes(32_000), {"language": "de-DE"}, (400, "language", "unsupported_language")),
        (bytes(32_000), {"reference_text": ""}, (400, "reference_text", None)),
        (bytes(32_000), {"reference_text": " … — !?"}, (400, "reference_text", None)),
        (bytes(32_000), {"grading_system": "TenPoint"}, (400, "grading_system", None)),
        (bytes(32_000), {"granularity": "Letter"}, (400, "granularity", None)),
        (bytes(32_000), {"enable_miscue": "yes"}, (400, "enable_miscue", None)),
        (bytes(32_000), {"model": "sphinx-9"}, (404, "model", "model_not_found")),
        (bytes(1_001), {}, (400, "file", "audio_too_short")),
        (b"", {}, (400, "file", "audio_too_short")),
        (wav_header(44_100) + bytes(88_200), {}, (400, "file", None)),
        (b"RIFF\0\0\0\0nonsense", {}, (400, "file", None)),
        (bytes(12 * 1024 * 1024), {}, (413, "file", None)),
    ],
    ids=[
        *("language", "none", "signs", "grading", "granularity", "miscue", "model", "short", "empty"),
        *("rate", "riff", "large"),
    ],
)
async def test_audio_that_cannot_be_graded_is_refused(
    local: Local, needs, audio: bytes, fields: dict[str, str], reported: tuple[int, str, str | None]
) -> None:
    needs("pocketsphinx")
    async with asking(local, form(audio, **fields)) as response:
        status, error = await refusal(response)
    assert (status, error["param"], error["code"]) == reported


async def test_a_form_with_a_missing_or_misplaced_file_is_refused(local: Local, needs) -> None:
    needs("pocketsphinx")
    early = FormData()
    early.add_field("file", b"\0\0" * 16_000, filename="audio.pcm")
    early.add_field("model", "pocketsphinx")
    late = FormData({"model": "pocketsphinx", "reference_text": "Hello"}, default_to_multipart=True)
    for body, param in ((early, "model"), (late, "file"), (b"--x", None)):
        async with asking(local, body) as response:
            status, error = await refusal(response)
        assert (status, error["param"]) == (400, param)


async def test_invalid_parameters_are_refused_before_the_audio_ends(local: Local, needs) -> None:
    needs("pocketsphinx")
    answered = asyncio.Event()

    async def spoken() -> AsyncIterator[bytes]:
        while not answered.is_set():
            yield bytes(3_200)
            await asyncio.sleep(0.01)

    async with asyncio.timeout(10), asking(local, form(spoken(), language="fr")) as response:
        assert (await refusal(response))[0] == 400
        answered.set()


async def test_audio_may_arrive_at_the_speed_of_speech(local: Local, reader: Reader) -> None:
    pcm = await reader(REFERENCE)

    async def spoken() -> AsyncIterator[bytes]:
        for begin in range(0, len(pcm), 3_333):
            yield pcm[begin : begin + 3_333]
            await asyncio.sleep(0)

    async with asking(local, form(spoken())) as response:
        assert errors(await response.json()) == sound(REFERENCE)


async def test_error_of_a_missing_assessor_says_what_to_install(serving) -> None:
    why = "install parley[local]: pocketsphinx is missing"
    local = await serving(Engines(chats={}, missing={"pocketsphinx": why}))
    async with asking(local, form(bytes(32_000))) as response:
        status, error = await refusal(response)
    assert (status, error["code"]) == (501, "engine_missing")
    assert "pip install 'parley[local]'" in error["message"]


class FixedRecognizer:
    """A recognizer that returns a fixed text for any audio."""

    fault = None

    def __init__(self, text: str) -> None:
        self.called = asyncio.Event()
        self.text = text

    async def transcribe(self, audio: bytes, *, prompt: str | None) -> Transcription:
        self.called.set()
        seconds = len(audio) / 32_000
        segments = [
            TranscribedSegment(begin, min(begin + 5.0, seconds), self.text, [], 0.0, -0.2, 1.0, 0.0)
            for begin in range(0, max(1, round(seconds)), 5)
        ]
        return Transcription(seconds, segments)

    def close(self) -> None:
        pass


@pytest.mark.soak
async def test_a_word_that_is_cut_off_at_the_start_has_times_within_the_audio(reader: Reader) -> None:
    """Whisper is not asked, which would decode such recordings again and again for want of a good text."""
    text = "Dogs bark."
    samples = memoryview(await reader(text)).cast("h")
    start = next(at for at, sample in enumerate(samples) if abs(sample) > 300)
    pronunciation = Pronunciation(FixedRecognizer(text))
    try:
        for missing_ms in (20, 30, 40):
            pcm = samples[start + missing_ms * 16 :].tobytes()
            result = await pronunciation.assess(pcm, AssessmentRequest(text))
            check_times(result.raw["NBest"][0]["Words"], len(pcm) / 32_000 * SECOND)
    finally:
        await asyncio.to_thread(pronunciation.close)


async def test_a_process_that_dies_is_restarted(reader: Reader) -> None:
    pronunciation = Pronunciation(FixedRecognizer(REFERENCE))
    request = AssessmentRequest(REFERENCE)
    try:
        pcm = await reader(REFERENCE)
        first = await pronunciation.assess(pcm, request)
        died = pronunciation.pid
        assert died is not None
        os.kill(died, signal.SIGKILL)
        second = await pronunciation.assess(pcm, request)
        assert pronunciation.pid not in {None, died}
        assert second.raw["NBest"][0]["Words"] == first.raw["NBest"][0]["Words"]
    finally:
        await asyncio.to_thread(pronunciation.close)
    assert pronunciation.pid is None


async def test_an_assessment_whose_client_disconnects_is_stopped(reader: Reader) -> None:
    recognizer = FixedRecognizer(REFERENCE)
    pronunciation = Pronunciation(recognizer)
    try:
        pcm = await reader(REFERENCE)
        await pronunciation.assess(pcm, AssessmentRequest(REFERENCE))
        busy = pronunciation.pid
        recognizer.called.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await pronunciation.assess(pcm * 90, AssessmentRequest(REFERENCE * 90))
        assert recognizer.called.is_set()
        assert pronunciation.pid is None
        await pronunciation.assess(pcm, AssessmentRequest(REFERENCE))
        assert pronunciation.pid not in {None, busy}
    finally:
        await asyncio.to_thread(pronunciation.close)


async def test_assessments_over_the_limit_are_refused_as_retryable(needs) -> None:
    needs("pocketsphinx")

    class BlockedRecognizer(FixedRecognizer):
        async def transcribe(self, audio: bytes, *, prompt: str | None) -> Transcription:
            self.called.set()
            return await asyncio.Event().wait()

    recognizer = BlockedRecognizer("")
    pronunciation = Pronunciation(recognizer)
    request = AssessmentRequest(REFERENCE)

    async def assess_concurrently(number: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(number):
                group.create_task(pronunciation.assess(bytes(32_000), request))

    try:
        async with asyncio.timeout(5):
            with pytest.raises(ExceptionGroup) as refused:
                await assess_concurrently(9)
        (fault,) = refused.value.exceptions
        assert isinstance(fault, Fault)
        assert (fault.status, fault.retry_after_s) == (429, 1)
    finally:
        await asyncio.to_thread(pronunciation.close)
