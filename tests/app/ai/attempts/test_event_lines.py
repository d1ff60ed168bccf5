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
@pytest.mark.parametrize("frame", FRAMES)
async def test_lines_are_read_as_the_standard_says(
    talk: Talk, server: Server, sandbox: Running, platform: str, frame: str
) -> None:
    await chat(server, sandbox, "one", platform, key_of(events=FRAMES[frame](ANSWERS[platform])))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]
