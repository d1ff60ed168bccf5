"""Links to cached speech work until they expire; afterwards its files are removed."""

from storage.conversations.speech_sweep import sweep
from tests.app.ai.conftest import Talk
from tests.app.ai.speech.cached_speech import cached_files, calls, only_key, spoken, voice
from tests.app.ai.speech.speech import fetch
from tests.peers.sse_client import named
from tests.running.servers import Server
from tests.storage.conversations.speech_sweeps import DAY_S, HOUR_S, pass_s
from vendors.sandbox.server import Running


async def test_files_of_cached_speech_are_removed_if_it_is_not_requested_again(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await voice(server, sandbox, cache_days=2)
    valkey, objects = server.services.valkey, server.services.objects
    await spoken(talk)
    await pass_s(valkey, DAY_S)
    link = named(await spoken(talk), "audio")[0]["audio_url"]
    await pass_s(valkey, 3 * DAY_S)
    await valkey.client.delete(await only_key(server, "speech"))  # Its days have passed.
    assert await sweep(valkey, objects) == 0
    assert await fetch(talk, link)
    await pass_s(valkey, 2 * HOUR_S)
    assert await sweep(valkey, objects) == 2
    assert await cached_files(server) == []
    assert await fetch(talk, named(await spoken(talk), "audio")[0]["audio_url"])
    assert calls(sandbox) == 2
