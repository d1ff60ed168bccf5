"""Event streams with the line ends, marks and lines between events that servers and proxies send."""

import pytest

from tests.app.ai.attempts.odd_events import DONE, STOPPED, block, candidate, delta, event, said_by
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import chat
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

BOM = "\ufeff"
ANSWERS = {
    "vendor_b_llm": [delta("Hel"), delta("lo."), delta("", "stop"), DONE],
    "gemini": [candidate("Hel", None), candidate("lo.", None), candidate("")],
    "anthropic": [block("Hel"), block("lo."), STOPPED, event(type="message_stop")],
}
BETWEEN = {
    "words": "ping\n\n",
    "spaces": "  \n\n",
    "a page": "<html>\n<body>\n  <a href='x'>502</a> {\n}\n</html>\n\n",
    "the start of an object": '{\n"x": [\n',
    "a mark": "[DONE\n\n",
    "words of data": "data: keep alive\n\ndata: heartbeat 2024-01-01T00:00:00Z\n\ndata: 09:30 still here...\n\n",
    "unknown fields": ": keep-alive\nretry: 5\nx: y\ndata \n\n",
}
FRAMES = {
    "bom": lambda events: BOM + "".join(events),
    "cr": lambda events: "".join(events).replace("\n", "\r"),
    "crlf": lambda events: "".join(events).replace("\n", "\r\n"),
    "mixed": lambda events: BOM + "".join(events).replace("\n\n", "\r\n\r", 1),
    "one line feed": lambda events: "".join(events).replace("\n\n", "\n"),
    "names and one line feed": lambda events: "".join(f"event: x\n{event[:-1]}" for event in events),
    "words and one line feed": lambda events: "data: ping\n".join(event[:-1] for event in events),
    **{name: lambda events, line=line: line + line.join(events) for name, line in BETWEEN.items()},
}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.mark.parametrize("platform", ANSWERS)
@pytest.mark.parametrize(
    ("label", "before"),
    [
        ("text/plain", ""),
        ("application/json", BOM + "\r\n"),
        ("application/octet-stream", ": ping\n\n"),
        ("text/plain", "event: x\n"),
    ],
)
async def test_an_event_stream_is_read_whatever_its_label(
    talk: Talk, server: Server, sandbox: Running, *, platform: str, label: str, before: str
) -> None:
    body = before + "".join(ANSWERS[platform])
    await chat(server, sandbox, "one", platform, key_of(events=body, content_type=label, pace_ms=1))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]


@pytest.mark.parametrize("label", ["text/plain", "application/json", "application/octet-stream"])
@pytest.mark.parametrize("body", ['{"error": {"message": "busy"}}', "data is missing", "", "d", "<html>"])
async def test_other_bodies_are_no_event_stream(
    talk: Talk, server: Server, sandbox: Running, label: str, body: str
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=body, content_type=label))

    seen = await talk.turn("Hello", "one")

    (attempt,) = seen[-1].content["error"]["extra"]["attempts"]
    assert attempt["message"].endswith(f"answered with {label}, not an event stream")


@pytest.mark.parametrize("platform", ANSWERS)
@pytest.mark.parametrize("words", ["Internal Server Error", "upstream connect error", "<html>502</html>", "error"])
async def test_words_about_an_error_are_no_heartbeat(
    talk: Talk, server: Server, sandbox: Running, platform: str, words: str
) -> None:
    body = ANSWERS[platform][0] + f"data: {words}\n\n" + "".join(ANSWERS[platform][1:])
    await chat(server, sandbox, "one", platform, key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("error", "Hel"), seen[-1]
    assert seen[-1].content["error"]["message"].endswith("sent an event that is not JSON")


@pytest.mark.parametrize("platform", ANSWERS)
@pytest.mark.parametrize("frame", FRAMES)
async def test_lines_are_read_as_the_standard_says(
    talk: Talk, server: Server, sandbox: Running, platform: str, frame: str
) -> None:
    await chat(server, sandbox, "one", platform, key_of(events=FRAMES[frame](ANSWERS[platform])))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]
