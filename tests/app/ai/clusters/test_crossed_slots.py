"""Commands whose keys are in several slots: no node executes them, so they must not seem to be an outage."""

import pytest

from storage.valkey.client import map_errors
from storage.valkey.refused import REFUSED
from streams.wire.errors import ValkeyError
from tests.running.servers import Server

CROSSED = ("CROSSSLOT",)


@pytest.fixture
def _no_crossed_slots() -> None:
    """All other tests fail if a command has keys in several slots."""


async def test_commands_with_keys_in_several_slots_are_counted_as_refused(server: Server) -> None:
    valkey = server.services.valkey
    one, other = valkey.key("one", "key"), valkey.key("other", "key")
    commands = {
        "with one connection": lambda: valkey.call("MGET", one, other),
        "mget": lambda: valkey.client.mget([one, other]),
        "rename": lambda: valkey.client.rename(one, other),
        "eval": lambda: valkey.client.eval("return 1", 2, one, other),
        "xread": lambda: valkey.blocking.xread({one: 0, other: 0}),
    }
    for name, command in commands.items():
        before = REFUSED.counts().get(CROSSED, 0)
        with pytest.raises(ValkeyError, match="refused a command"), map_errors():
            await command()
        assert REFUSED.counts().get(CROSSED, 0) == before + 1, name
