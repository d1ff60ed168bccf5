"""The client reads the transcripts of complete streams as the server means them."""

import pytest

from tests.clients.scripted_server import scripted_server
from tests.clients.transcripts import Transcript, transcripts, view
from tests.clients.typescript.conftest import PROMPT
from tests.clients.typescript.program import ClientError, Program

OPTIONS = {"strategies": ["one"]}


@pytest.mark.parametrize("transcript", transcripts(), ids=lambda transcript: transcript.name)
async def test_a_transcript_is_read_as_it_was_sent(program: Program, transcript: Transcript) -> None:
    async with scripted_server([{"events": transcript.events}]) as server:
        await program.do("client", name="user", url=server.url, options={"backoff": PROMPT})
        if transcript.is_speech:
            stream = program.read(speak="Hello", options=OPTIONS)
        else:
            stream = program.read(options={**OPTIONS, "text": "Hello", "languageCode": "en-US"})
        error = None
        try:
            await stream.ended()
        except ClientError as raised:
            found = raised.error
            error = {"error_type": found["errorType"], "message": found["message"], "extra": found["extra"]}
    events = [stream.events.get_nowait() for _ in range(stream.events.qsize())]
    assert [view(event["name"], event["content"]) for event in events] == transcript.seen()
    assert error == transcript.error()
