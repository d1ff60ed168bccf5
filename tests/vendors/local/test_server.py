"""The server of the local engines: available and missing engines, and clients that disconnect."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from tests.vendors.local.conftest import Local, events, refusal
from vendors.local.engines.engine import Engine
from vendors.local.engines.engines import Engines
from vendors.local.engines.faults import Fault
from vendors.local.engines.packages import Package, first_fault
from vendors.local.engines.protocols import ChatOptions, Spoken
from vendors.local.engines.scripted import Scripted
from vendors.protocols import ChatItem, ChatMessage, TextDelta

ESPEAK_IS_MISSING = "install parley[local]: espeakng_loader is missing"


class Endless:
    """An engine that speaks and generates text until its client disconnects."""

    fault = None
    sample_rate = 8_000

    def __init__(self) -> None:
        self.stopped = asyncio.Event()

    @asynccontextmanager
    async def speak(self, text: str, *, voice: str | None, speed: float) -> AsyncIterator[AsyncIterator[Spoken]]:
        async with self._forever(Spoken(bytes(1600), [])) as pieces:
            yield pieces

    @asynccontextmanager
    async def reply(
        self, messages: Sequence[ChatMessage], options: ChatOptions
    ) -> AsyncIterator[AsyncIterator[ChatItem]]:
        async with self._forever(TextDelta("on ")) as items:
            yield items

    @asynccontextmanager
    async def _forever(self, item):
        async def items():
            while True:
                yield item
                await asyncio.sleep(0)

        try:
            yield items()
        finally:
            self.stopped.set()

    def close(self) -> None:
        pass


class Failing(Endless):
    """An engine that fails after its first piece, or before it if `early`."""

    def __init__(self, error: Exception, *, early: bool = False) -> None:
        super().__init__()
        self.error, self.early = error, early

    @asynccontextmanager
    async def _forever(self, item):
        async def items():
            if not self.early:
                yield item
            raise self.error

        yield items()


async def test_health_and_models_list_missing_engines(serving) -> None:
    local = await serving(Engines(chats={"scripted": Scripted()}, missing={"espeak": ESPEAK_IS_MISSING}))
    async with local.http.get(local.url.removesuffix("/v1") + "/health") as response:
        health = await response.json()
    assert health == {"status": "ok", "engines": {"scripted": None, "espeak": ESPEAK_IS_MISSING}}
    async with local.http.get(f"{local.url}/models") as response:
        models = await response.json()
    assert [model["id"] for model in models["data"]] == ["scripted"]


async def test_missing_engine_says_what_to_install(serving) -> None:
    local = await serving(
        Engines(chats={}, missing={"espeak": ESPEAK_IS_MISSING, "whisper": "its file is not known"})
    )
    async with local.speech("Hello") as response:
        status, error = await refusal(response)
    assert status == 501
    assert error == {
        "message": "espeak is not installed: pip install 'parley[local]'",
        "type": "engine_missing",
        "param": "model",
        "code": "engine_missing",
    }
    async with local.transcription(b"x") as response:
        status, error = await refusal(response)
    assert (status, error["message"]) == (501, "whisper cannot be used: its file is not known")


async def test_an_engine_that_cannot_be_loaded_is_listed_as_missing(serving) -> None:
    def load() -> None:
        raise OSError("no such library")

    class Broken(Endless):
        engine = Engine("broken", load, max_requests=1)

        @property
        def fault(self) -> str | None:
            return self.engine.fault

        @asynccontextmanager
        async def speak(self, text, *, voice, speed):
            with self.engine.slot():
                async with self.engine.run(lambda *_: None) as output:
                    yield output

    local = await serving(Engines(chats={}, voices={"broken": Broken()}))
    for _ in range(2):
        async with local.speech("Hello", "broken", response_format="pcm") as response:
            status, error = await refusal(response)
        assert status == 501
        assert "no such library" in error["message"]
    async with local.http.get(local.url.removesuffix("/v1") + "/health") as response:
        assert "no such library" in (await response.json())["engines"]["broken"]
    Broken.engine.close()


@pytest.mark.parametrize("path", ["/v1/embeddings", "/"])
async def test_unknown_paths_are_refused_in_openais_form(local: Local, path: str) -> None:
    async with local.http.get(local.url.removesuffix("/v1") + path) as response:
        assert (await refusal(response))[0] == 404


async def test_synthesis_stops_when_its_client_disconnects(serving) -> None:
    voice = Endless()
    local = await serving(Engines(chats={}, voices={"endless": voice}))
    async with local.speech("Hello", "endless", response_format="pcm") as response:
        assert await response.content.readany()
        assert not voice.stopped.is_set()
        response.close()
    async with asyncio.timeout(5):
        await voice.stopped.wait()


async def test_generation_stops_when_its_client_disconnects(serving) -> None:
    chat = Endless()
    local = await serving(Engines(chats={"endless": chat}))
    async with local.chat("Go on", model="endless", stream=True) as response:
        assert await response.content.readany()
        response.close()
    async with asyncio.timeout(5):
        await chat.stopped.wait()


async def test_stream_that_breaks_ends_with_an_error_event(serving) -> None:
    broken = {"fault": Failing(Fault(500, "the model is lost")), "bug": Failing(RuntimeError("secret"))}
    local = await serving(Engines(chats=broken))
    for model, message in (("fault", "the model is lost"), ("bug", "The server had an error")):
        async with local.chat("Hello", model=model, stream=True) as response:
            *_, last = await events(response)
        assert last["error"]["message"].startswith(message)


async def test_the_response_is_cut_if_the_audio_breaks_off(serving) -> None:
    local = await serving(Engines(chats={}, voices={"bug": Failing(RuntimeError("secret"))}))
    async with local.speech("Hello", "bug", response_format="pcm") as response:
        assert response.status == 200
        with pytest.raises(Exception, match="payload"):
            await response.read()


async def test_failures_before_the_first_word_are_not_streams(serving) -> None:
    local = await serving(Engines(chats={"bug": Failing(RuntimeError("secret"), early=True)}))
    async with local.chat("Hello", model="bug", stream=True) as response:
        status, error = await refusal(response)
    assert (status, error["type"]) == (500, "server_error")
    assert "secret" not in error["message"]


async def test_full_engine_requests_a_retry(serving) -> None:
    engine = Engine("narrow", object, max_requests=1)

    class Narrow(Endless):
        @asynccontextmanager
        async def reply(self, messages, options):
            with engine.slot():
                async with super().reply(messages, options) as items:
                    yield items

    narrow = Narrow()
    local = await serving(Engines(chats={"narrow": narrow}))
    async with local.chat("Go on", model="narrow", stream=True) as response:
        await response.content.readany()
        async with local.chat("Me too", model="narrow") as second:
            assert (await refusal(second))[0] == 429
            assert second.headers["Retry-After"] == "1"
        response.close()
    async with asyncio.timeout(5):
        await narrow.stopped.wait()
    engine.close()


async def test_jobs_without_a_waiting_caller_are_not_started() -> None:
    engine: Engine[object] = Engine("single", object, max_requests=9)
    begun: list[str] = []

    def job(name: str):
        def work(_, put) -> None:
            begun.append(name)
            while put(name):
                pass

        return work

    async with engine.run(job("first")) as first:
        await anext(aiter(first))
        async with engine.run(job("second")):
            pass
    async with engine.run(lambda *_: begun.append("third")) as third:
        assert [item async for item in third] == []
    assert begun == ["first", "third"]
    engine.close()


def test_weights_are_checked_by_their_digest(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "some_weights"
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"right")
    monkeypatch.syspath_prepend(tmp_path)
    right = hashlib.sha256(b"right").hexdigest()
    assert first_fault([Package("some_weights", {"model.bin": right})]) is None
    assert "SHA-256" in first_fault([Package("some_weights", {"model.bin": hashlib.sha256(b"x").hexdigest()})])
    assert "other.bin of some_weights is missing" in first_fault([Package("some_weights", {"other.bin": right})])
    missing = first_fault([Package("some_weights"), Package("no_such_package")])
    assert missing == "install parley[local]: no_such_package is missing"
