"""The page of events has an example of each event of each stream, which the models accept, and their order."""

import re
from typing import Any

import pytest
from pydantic import TypeAdapter

from app.ai.reference import CONVERSE, SPEAK
from app.http.openapi.events import content_types
from app.http.rows.docs import Stream
from deploy.reference.events import events_page
from streams.events import Event
from streams.wire.codec import dumps, loads
from tests.code.source_files import ROOT

STREAMS = {
    name: docs.stream for name, docs in (("conversations", CONVERSE), ("text to speech", SPEAK)) if docs.stream
}
PAGE = events_page()
FRAME = re.compile(r"^event: (\w+)\ndata: (.*)$", re.MULTILINE)
EXAMPLES = {
    name: [loads(data) for data in re.findall(r"^```json\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)]
    for name, section in re.findall(r"^### (\w+)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
}
PARAGRAPH = r"(?:assistant_output_(?:chunk|content_segment|restart) )"
SOUND = r"(?:assistant_output_(?:viseme|audio_chunk|audio) )"
FIRST_SOUND = "assistant_output_audio_first_sentence_enabled "
ORDER = {
    "conversations": rf"start (?:end_of_speech )?(?:user_input )?(?:{PARAGRAPH}|assistant_output_viseme )*"
    rf"(?:{FIRST_SOUND}(?:{PARAGRAPH}|{SOUND})*)?(?:end|error)",
    "text to speech": r"start (?:viseme |audio_chunk )*(?:viseme |audio )*(?:end|error)",
}
"""What the page says about the order of events, as an expression."""


def pairs() -> list[tuple[str, type[Event]]]:
    return [(name, event) for name, stream in STREAMS.items() for event in stream.events]


@pytest.mark.parametrize(("kind", "event"), pairs(), ids=lambda item: getattr(item, "name", item))
def test_each_event_has_an_example_that_its_models_accept(kind: str, event: type[Event]) -> None:
    shown = EXAMPLES[event.name]
    assert shown, event.name
    models = content_types(STREAMS[kind], event)
    assert [example for example in shown if accepted(models, example["content"])], shown
    for example in shown:
        assert example.keys() == {"content", "timestamp"}
        every = [model for stream in STREAMS.values() for model in content_types(stream, event)]
        assert accepted(every, example["content"]), example


def accepted(models: Any, content: Any) -> bool:
    """Return whether a model accepts the content and knows each of its fields."""
    for model in models:
        adapter = TypeAdapter(model)
        try:
            value = adapter.validate_json(dumps(content))
        except ValueError:
            continue
        if adapter.dump_python(value, mode="json", exclude_unset=True) == content:
            return True
    return False


def test_a_content_that_lacks_a_field_or_has_another_is_not_accepted() -> None:
    event = next(event for event in STREAMS["conversations"].events if event.name == "assistant_output_chunk")
    models = content_types(STREAMS["conversations"], event)
    assert accepted(models, {"index": 0, "text": "a"})
    assert not accepted(models, {"index": 0})
    assert not accepted(models, {"index": 0, "text": "a", "more": 1})


@pytest.mark.parametrize("kind", STREAMS)
def test_the_page_shows_streams_in_the_documented_order(kind: str) -> None:
    for transcript in STREAMS[kind].transcripts.values():
        text = transcript.decode()
        assert text.rstrip("\n") in PAGE
        assert re.fullmatch(ORDER[kind], order_of(text)), order_of(text)


def order_of(frames: str) -> str:
    return " ".join(name for name, _ in FRAME.findall(frames))


@pytest.mark.parametrize(
    ("recorded", "kind"),
    [
        ("typed-turn", "conversations"),
        ("cut-turn", "conversations"),
        ("all-failed", "conversations"),
        ("text-to-speech", "text to speech"),
    ],
)
def test_recorded_streams_have_the_documented_order(recorded: str, kind: str) -> None:
    frames = (ROOT / "tests/transcripts" / f"{recorded}.sse").read_text()
    assert re.fullmatch(ORDER[kind], order_of(frames))


def test_the_tables_list_the_events_of_each_stream_in_that_order() -> None:
    for kind, stream in STREAMS.items():
        _, _, rest = PAGE.partition(f"### Of {kind}: the order\n")
        listed = re.findall(r"^\| \[`(\w+)`\]\(#\w+\) \|", rest.partition("\n##")[0], re.MULTILINE)
        assert listed == names(stream)
    assert EXAMPLES["ping"]


def names(stream: Stream) -> list[str]:
    return [event.name for event in stream.events]
