"""JSON of random shape in messages of random paths: no exception, and nothing that has arrived is lost."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.wire.codec import dumps
from tests.vendors.random_json import VERY_MANY, extended, numbers_in, random_json
from tests.vendors.speech.azure.clients import ask
from vendors.errors import VendorError
from vendors.protocols import AudioBytes, Visemes
from vendors.speech.azure import recognition, stt, tts
from vendors.speech.azure.audio import PcmFormat
from vendors.speech.azure.frames import Frame, binary_frame, read_frame, text_frame
from vendors.speech.azure.merging import merge_phrases

PATHS = st.sampled_from([
    "speech.hypothesis", "speech.fragment", "speech.phrase", "audio.metadata", "audio", "response", "turn.start",
    "speech.startDetected", "speech.endDetected", "x",
])  # fmt: skip
HARMLESS_NAMES = (
    "Id", "Text", "Offset", "Duration", "NBest", "Words", "Word", "Channel", "Metadata", "Type", "Data", "VisemeId",
    "IsLastAnimation", "PronunciationAssessment", "AccuracyScore", "ErrorType", "Confidence", "Lexical", "Phonemes",
    "FluencyScore", "context",
)  # fmt: skip
HARMLESS = random_json(HARMLESS_NAMES, texts=["Viseme", "Omission", "Insertion", "7", "1e400"])
ANY = random_json(
    [*HARMLESS_NAMES, "RecognitionStatus", "DisplayText", "Display", "ProsodyScore", "ITN"],
    texts=["Viseme", "Success", "NoMatch", "Error", "Insertion", "7", "one two"],
)
Messages = list[tuple[str, Any]]
T = TypeVar("T")
ASSESSED = {"AccuracyScore": 100.0, "FluencyScore": 90, "CompletenessScore": "80", "PronScore": 95.5}


def messages(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Messages]:
    return st.lists(st.tuples(PATHS, values), max_size=6)


class Socket:
    """The messages of one turn."""

    vendor = "v"

    def __init__(self, sent: Iterable[str | bytes]) -> None:
        self._sent = sent

    async def frames(self) -> AsyncGenerator[Frame]:
        for message in self._sent:
            yield read_frame(message)


def everything(items: AsyncIterator[T], into: list[T]) -> list[T]:
    """Return the items of an iterator that never waits."""
    step = into_list(items, into)
    with pytest.raises(StopIteration):
        step.send(None)
    return into


async def into_list(items: AsyncIterator[T], into: list[T]) -> None:
    async for item in items:
        into.append(item)  # noqa: PERF401 - those before an error count


def json_message(path: str, value: Any) -> str:
    return text_frame({"Path": path}, dumps(value).decode())


def phrase(number: int, value: Any) -> dict[str, Any]:
    word = {"Word": f"«{number}»", "Offset": 5, "Duration": 9, "PronunciationAssessment": {"AccuracyScore": "9"}}
    best = {"Display": f"«{number}»", "PronunciationAssessment": ASSESSED, "Words": [value, word]}
    result = {"RecognitionStatus": "Success", "DisplayText": f"«{number}»", "NBest": [best, value]}
    return extended(result, value)


def upload(socket: Socket) -> recognition._Upload:
    sending = recognition._Upload(socket, None, 3200)  # type: ignore[arg-type]
    sending._pcm, sending._sent_bytes = PcmFormat(16_000), 6400
    return sending


def heard(sent: Messages, *, may_fail: bool = False) -> list[recognition.Phrase]:
    """Check the texts of a turn that has a valid phrase before each message, and return its phrases."""
    valid = [json_message("speech.phrase", phrase(number, value)) for number, (_, value) in enumerate(sent)]
    odd = [json_message(path, value) for path, value in sent]
    socket = Socket([message for pair in zip(valid, odd, strict=True) for message in pair])
    sending = upload(socket)
    found: list[Any] = []
    texts: list[Any] = []
    try:
        everything(recognition._turn(socket, sending), found)  # type: ignore[arg-type]
        everything(stt._transcripts("v", replayed(found), " "), texts)
    except VendorError:
        assert may_fail
    numbers = numbers_in(texts[-1].text.encode()) if texts else []
    assert numbers == list(range(len(numbers) if may_fail else len(sent)))
    assert 3200 <= sending.recognized_bytes <= 3200 + 6400
    return [item for item in found if isinstance(item, recognition.Phrase)]


async def replayed(items: list[T]) -> AsyncGenerator[T]:
    for item in items:
        yield item


def spoken(sent: Messages) -> None:
    number_of_bytes = 0
    stream: list[str | bytes] = []
    for number, (path, value) in enumerate(sent):
        audio = bytes([number]) * 1000
        number_of_bytes += len(audio)
        shape = {"Type": "Viseme", "Data": {"Offset": 10_000 * number, "VisemeId": number}}
        stream += [
            json_message("audio.metadata", {"Metadata": [value, extended(shape, value)]}),
            binary_frame({"Path": "audio"}, audio),
            json_message(path, value),
        ]
    stream.append(json_message("turn.end", {}))
    items: list[Any] = []
    coding = tts._Coding.of(16_000, mp3=False)
    everything(tts._read_socket(Socket(stream), coding), items)  # type: ignore[arg-type]
    found = b"".join(item.audio for item in items if isinstance(item, AudioBytes))
    assert found == b"".join(bytes([number]) * 1000 for number in range(len(sent)))
    shapes = [item for item in items if isinstance(item, Visemes)]
    assert all(shape.viseme_id in range(22) for item in shapes for shape in item.visemes)
    dumps(shapes)


def assessed(phrases: list[recognition.Phrase]) -> None:
    with_text = [item.value for item in phrases if recognition.phrase_text("v", item.value).strip()]
    for request in (ask("«0» «1» x", enable_miscue=True), ask("«0»", grading_system="FivePoint")):
        if with_text:
            raw = merge_phrases(with_text, request)
            assert numbers_in(str(raw["DisplayText"]).encode()) == list(range(len(with_text)))
            dumps(raw)


@given(messages(HARMLESS))
def test_random_messages_between_phrases_are_skipped(sent: Messages) -> None:
    assessed(heard(sent))


@given(messages(ANY))
def test_phrases_of_random_shape_are_text_or_errors_of_the_vendor(sent: Messages) -> None:
    heard(sent, may_fail=True)


@given(st.lists(ANY, max_size=3), st.booleans(), st.sampled_from(["FivePoint", "HundredMark"]))
def test_assessments_of_random_shape_are_merged_or_malformed(values: list[Any], miscue: bool, system: Any) -> None:
    merged(values, miscue=miscue, system=system)


def merged(values: list[Any], *, miscue: bool, system: Any) -> None:
    objects = [value for value in values if isinstance(value, dict)]
    best = {"PronunciationAssessment": {**ASSESSED, "ProsodyScore": 5}, "Words": objects}
    phrases = [{"NBest": [extended(best, value)], **value} for value in objects] + [{"NBest": [best]}]
    try:
        dumps(merge_phrases(phrases, ask("one two", enable_miscue=miscue, grading_system=system)))
    except ValueError:
        assert any("NBest" in value for value in objects)


@given(messages(ANY))
def test_random_messages_between_audio_are_skipped(sent: Messages) -> None:
    spoken(sent)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("speech.phrase", {"RecognitionStatus": ["Success"]}),
        ("speech.phrase", {"Offset": [1], "Duration": "soon", "NBest": {"Display": "x"}}),
        ("speech.hypothesis", {"Text": {"x": 1}}),
        ("speech.hypothesis", 7),
        ("speech.fragment", None),
        ("audio", {}),
    ],
)
def test_values_of_another_type_are_skipped(path: str, value: Any) -> None:
    heard([(path, value)])
    spoken([(path, value)])


@pytest.mark.soak
@pytest.mark.timeout(0)
@settings(max_examples=VERY_MANY)
@given(messages(HARMLESS), messages(ANY), st.booleans())
def test_very_many_random_messages(harmless: Messages, sent: Messages, miscue: bool) -> None:
    assessed(heard(harmless))
    heard(sent, may_fail=True)
    spoken(sent)
    merged([value for _, value in sent], miscue=miscue, system="HundredMark")
