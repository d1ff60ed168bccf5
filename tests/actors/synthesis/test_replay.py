"""A replayed synthesis equals the recorded one, whatever its pieces."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.synthesis.replay import Recording, read, replay
from actors.synthesis.voice import SpokenFile
from storage.conversations.speech_cache import CachedSpeech
from storage.objects import open_objects
from storage.secrets import Keyring
from streams.wire.errors import StoreError
from tests.running.servers import MASTER_KEY
from tests.streams.audio.mp3_files import tagged_mp3, tone
from tests.streams.pieces import split
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Viseme, Visemes

MP3 = SpeechFormat("audio/mpeg", 24_000)
WAV = SpeechFormat("audio/wav", 16_000)
SYNTHESES = [(MP3, tagged_mp3(seconds=0.5)), (WAV, tone(seconds=0.2, sample_rate=16_000))]


def written_down(items: list[SpeechItem]) -> tuple[Recording, CachedSpeech]:
    recording = Recording("Hello")
    assert all(recording.add(item) for item in items)
    recording.end()
    assert recording.complete
    assert recording.file.format is not None
    reported = recording.file.format
    return recording, CachedSpeech(
        "name", reported.mime_type, reported.sample_rate, recording.score, has_viseme_file=False
    )


def filed(items: list[SpeechItem]) -> SpokenFile:
    """Return the file that contains `items`."""
    file = SpokenFile()
    for item in items:
        match item:
            case SpeechFormat():
                file.begin(item)
            case AudioBytes(audio):
                file.add_audio(audio)
            case Visemes(visemes):
                file.add_visemes(visemes)
    file.end("Hello")
    return file


@pytest.mark.parametrize("synthesis", SYNTHESES)
@given(st.lists(st.integers(0, 20_000), max_size=8))
def test_a_replay_gives_the_same_file_and_the_same_shapes(
    synthesis: tuple[SpeechFormat, bytes], at: list[int]
) -> None:
    speech_format, audio = synthesis
    items: list[SpeechItem] = [speech_format]
    for number, piece in enumerate(split(audio, at)):
        items += [Visemes([Viseme(10 * number, number % 22)]), AudioBytes(piece)]

    recording, speech = written_down(items)
    whole = recording.file.whole()
    said = replay("one", None, speech, whole[44:] if speech_format is WAV else whole)  # type: ignore[arg-type]
    again = _all_of(said)

    assert again[:2] == [Usage(0, 0), speech_format]
    assert filed(again).whole() == filed(items).whole() == whole
    assert filed(again).visemes == filed(items).visemes
    assert [item for item in again if isinstance(item, Visemes)] == [i for i in items if isinstance(i, Visemes)]


def _all_of(attempt) -> list[SpeechItem]:
    """Return all items of an attempt that never waits."""

    async def read_all() -> list[SpeechItem]:
        async with attempt.open() as items:
            return [item async for item in items]

    reading = read_all()
    try:
        reading.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited")


def test_too_large_synthesis_is_not_recorded() -> None:
    recording = Recording("Hello")
    assert recording.add(WAV)
    mebibyte = AudioBytes(bytes(1024 * 1024))
    assert [recording.add(mebibyte) for _ in range(17)] == [True] * 16 + [False]


def test_a_synthesis_of_too_many_pieces_is_not_recorded() -> None:
    recording = Recording("Hello")
    recording.add(WAV)
    taken = [recording.add(AudioBytes(b"ab")) for _ in range(20_001)]
    assert taken == [True] * 20_000 + [False]


def test_empty_synthesis_is_not_stored() -> None:
    recording = Recording("Hello")
    recording.add(MP3)
    recording.end()
    assert not recording.complete


async def test_audio_with_an_unexpected_length_is_refused(tmp_path: Path) -> None:
    keyring = Keyring.from_hex(MASTER_KEY)
    async with open_objects(
        folder=tmp_path, bucket=None, endpoint_url=None, public_url="http://localhost", keyring=keyring
    ) as objects:
        recording, speech = written_down([WAV, AudioBytes(b"abcd")])
        await objects.put(speech.audio_key, recording.file.whole(), content_type="audio/wav")
        assert await read(objects, speech) == b"abcd"
        await objects.put(speech.audio_key, recording.file.whole() + b"ef", content_type="audio/wav")
        with pytest.raises(StoreError):
            await read(objects, speech)
