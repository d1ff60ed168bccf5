"""The client reads the transcripts of complete streams as the server means them."""

import base64
from typing import Any

import pytest

from parley_client import (
    AudioChunk,
    AudioFile,
    End,
    Event,
    Paragraph,
    ParleyClient,
    ParleyError,
    TextChunk,
    UserInput,
)
from tests.clients.python.conftest import PROMPT
from tests.clients.scripted_server import scripted_server
from tests.clients.transcripts import Transcript, transcripts, view


@pytest.mark.parametrize("transcript", transcripts(), ids=lambda transcript: transcript.name)
async def test_a_transcript_is_read_as_it_was_sent(transcript: Transcript) -> None:
    async with (
        scripted_server([{"events": transcript.events}]) as server,
        ParleyClient(server.url, backoff=PROMPT) as client,
    ):
        stream = client.converse(strategies=["one"], text="Hello", language_code="en-US")
        if transcript.is_speech:
            stream = client.speak("Hello", strategies=["one"])
        seen: list[Any] = []
        error = None
        try:
            async for event in stream:
                seen.append(seen_of(event))  # noqa: PERF401 - what comes before an error counts
        except ParleyError as raised:
            error = {"error_type": raised.error_type, "message": raised.message, "extra": raised.extra}
    assert seen == transcript.seen()
    assert error == transcript.error()


def seen_of(event: Event) -> list[Any]:
    match event:
        case TextChunk() | Paragraph():
            return view(event.name, {"index": event.index, "text": event.text})
        case AudioChunk():
            audio = base64.b64encode(event.audio).decode()
            return view(
                event.name, {"audio": audio, "mime_type": event.mime_type, "sample_rate": event.sample_rate}
            )
        case AudioFile():
            return view(event.name, {"audio_url": event.audio_url, "mime_type": event.mime_type})
        case End():
            return view(event.name, {"finish_reason": event.finish_reason, "strategy": event.strategy})
        case UserInput():
            return view(event.name, event.text)
        case _:
            return view(event.name, event.name)
