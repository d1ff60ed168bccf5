"""Configs of kind `events` are validated when they are written, and their secrets are sealed."""

from typing import Any

import pytest

from tests.app.events.sinks import SECRET, Sinks
from tests.app.operators import Operator

PATH = "configs/default/events/crm"
WEBHOOK = {"url": "https://crm.example.com/in", "secret": SECRET, "events": ["account"]}
TOO_SHORT, NO_KEY = "whsec_c2hvcnQ=", "whsec_not Base64, but long enough to be a key"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"url": None, "secret": None}, "exactly one of url and stream is required"),
        ({"stream": "facts"}, "exactly one of url and stream is required"),
        ({"secret": None}, "secret is required with url"),
        ({"secret": TOO_SHORT}, "secret must be whsec_ and the Base64 form of 24 to 64 bytes"),
        ({"secret": NO_KEY}, "secret must be whsec_ and the Base64 form of 24 to 64 bytes"),
        ({"secret": ""}, "secret must be whsec_ and the Base64 form of 24 to 64 bytes"),
        ({"url": "ftp://crm.example.com"}, "url must be a URL that begins with http://, https:// or {sandbox}"),
        ({"url": "https:///in"}, "url must be a URL that begins with http://, https:// or {sandbox}"),
        ({"url": None, "secret": None, "stream": "a b"}, "stream must be 1 to 128 letters, digits"),
        ({"events": []}, "events must not be empty"),
        ({"events": ["account", "account"]}, "events must not contain a name twice"),
        ({"events": ["logins"]}, "events[0] must be one of"),
    ],
)
async def test_an_invalid_sink_is_refused_with_the_field_at_fault(
    sinks: Sinks, changes: dict[str, Any], problem: str
) -> None:
    value = {name: value for name, value in (WEBHOOK | changes).items() if value is not None}
    status, message = (await Operator(sinks.server).put(PATH, value)).error
    assert (status, problem in message) == (400, True), message
    assert SECRET not in message


async def test_the_secret_of_a_sink_is_never_returned(sinks: Sinks) -> None:
    operator = Operator(sinks.server)
    assert (await operator.put(PATH, WEBHOOK)).status == 200
    read = await operator("GET", PATH)
    assert SECRET not in str(read.body)
    async with sinks.server.services.database.connection() as conn:
        stored = await conn.fetch("select value from config_revisions where kind = 'events'")
    assert stored
    assert SECRET not in str(stored)
