"""One text in the first of several voices that can: from the cache where it is there, made once for all who ask."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, nullcontext
from itertools import takewhile

import structlog
from prometheus_client import Counter

from actors.context import StreamContext
from actors.replay import CACHE_VENDOR, READ_S, Recording, read, replay
from actors.speech_flight import FAILED, UNSHARED, Flight, Landing
from actors.speech_store import Kept, keep
from actors.strategies import Voice
from actors.voice import SpokenFile, voice_attempts
from storage.objects import ObjectStore
from storage.speech_cache import CachedSpeech, SpeechKey
from streams.wire.errors import ItemNotFound, ServiceError, StoreError
from streams.wire.ids import sha256_hex
from vendors.fallback import Attempt, failed_attempt, first_success
from vendors.protocols import SpeechItem

log = structlog.get_logger()
CACHE = Counter("parley_speech_cache", "Texts spoken by strategies that cache: hit, joined, miss", ["result"])

Candidate = tuple[str, Voice | ServiceError]

_FAILURES = 2
"""So many leaders may fail before who waits for them asks for itself: else a queue would try one by one."""


@asynccontextmanager
async def uttered(ctx: StreamContext, text: str, voices: Sequence[Candidate]) -> AsyncIterator["Utterance"]:
    """`text` as the first of `voices` says it that has output; what a cached voice has said, nobody is asked for.

    The vendor of a cached voice is asked by one stream at a time: others with the same first voice wait for what
    that one makes, and take it in whatever voice of theirs it was spoken in the end.
    """
    async with AsyncExitStack() as stack:
        search = _Search(ctx, text, voices)
        with ctx.receipt.waiting():
            await search.go(stack)
            try:
                attempt, items = await stack.enter_async_context(first_success(search.attempts(), ctx.attempts))
            except ServiceError:
                await search.land(FAILED)
                raise
        utterance = Utterance(ctx.resources.objects, search, attempt)
        await utterance.begin()
        utterance.items = await stack.enter_async_context(aclosing(utterance.heard(items)))
        try:
            yield utterance
        except ServiceError:
            await search.land(FAILED)
            raise
        await search.land(UNSHARED)


class Utterance:
    """What is said, item by item, and where it is kept."""

    items: AsyncIterator[SpeechItem]

    def __init__(self, objects: ObjectStore, search: "_Search", attempt: Attempt[SpeechItem]) -> None:
        self.strategy = attempt.strategy
        self._objects = objects
        self._search = search
        self._cached = attempt.vendor == CACHE_VENDOR
        self._key = search.keys.get(attempt.strategy)
        self._recording: Recording | None = None

    async def begin(self) -> None:
        """Where nothing will come for those who wait, or all is there, they are told at once."""
        if self._cached and self._key is not None:
            CACHE.labels("joined" if self._search.joined else "hit").inc()
            await self._search.land(Landing("stored", self._key.voice))
        elif self._key is None:
            await self._search.land(UNSHARED)
        else:
            CACHE.labels("miss").inc()
            self._recording = Recording(self._search.text)

    async def heard(self, items: AsyncIterator[SpeechItem]) -> AsyncGenerator[SpeechItem]:
        """The items, which are written down where they are to be cached."""
        listening = nullcontext if self._search.flight is None else self._search.flight.held_up
        async for item in items:
            if self._recording is not None and not self._recording.take(item):
                self._recording = None
                await self._search.land(UNSHARED)
            with listening():
                yield item
        if self._recording is not None:
            self._recording.end()

    async def keep(self, file: SpokenFile, name: str, *, need_viseme: bool) -> Kept:
        """Store `file`, which is all that was said, for who listens: under `name`, or where the cache has it."""
        if self._cached and self._key is not None:
            cached = self._search.found[self._key]
            there = cached.object_keys
            kept = await keep(self._objects, cached.name, file, need_viseme=need_viseme, there=there)
            await self._touch(self._key)
            return kept
        if self._key is None or self._recording is None or not self._recording.whole:
            return await keep(self._objects, name, file, need_viseme=need_viseme)
        cached_name = await self._announced(self._key, file)
        kept = await keep(self._objects, cached_name or name, file, need_viseme=need_viseme)
        if cached_name is not None:
            await self._publish(self._key, self._recording, cached_name, kept)
        return kept

    async def share(self) -> None:
        """Put all that was said into the cache, for others. That a store is away costs nobody anything else."""
        if self._cached and self._key is not None:
            await self._touch(self._key)
        elif self._key is not None and self._recording is not None and self._recording.whole:
            file = self._recording.file
            need_viseme = self._search.voice(self.strategy).need_viseme
            if need_viseme:
                file.estimate()
            name = await self._announced(self._key, file)
            if name is None:
                return
            try:
                kept = await keep(self._objects, name, file, need_viseme=need_viseme)
            except StoreError as error:
                log.warning("speech.not_cached", strategy=self.strategy, error=str(error))
            else:
                await self._publish(self._key, self._recording, name, kept)

    async def _announced(self, key: SpeechKey, file: SpokenFile) -> str | None:
        """The name in the cache to store `file` under; none while Valkey, which has it removed, is away."""
        name = key.new_name()
        days = self._search.voice(self.strategy).config.cache_days
        try:
            await self._search.cache.announce(name, file.mime_type, days=days)
        except StoreError as error:
            log.warning("speech.not_cached", strategy=self.strategy, error=str(error))
            return None
        return name

    async def _publish(self, key: SpeechKey, recording: Recording, name: str, kept: Kept) -> None:
        told = recording.file.format
        assert told is not None, "what is whole has a format"
        speech = CachedSpeech(name, told.mime_type, told.sample_rate, recording.score, kept.viseme_key is not None)
        try:
            await self._search.cache.put(key, speech, days=self._search.voice(self.strategy).config.cache_days)
        except StoreError as error:
            log.warning("speech.not_cached", strategy=self.strategy, error=str(error))
        else:
            await self._search.land(Landing("stored", key.voice))

    async def _touch(self, key: SpeechKey) -> None:
        try:
            days = self._search.voice(self.strategy).config.cache_days
            await self._search.cache.touch(key, self._search.found[key], days=days)
        except StoreError as error:
            log.debug("speech.not_touched", strategy=self.strategy, error=str(error))


class _Search:
    """Looks a text up in the cache, and finds out who asks a vendor for it where it is not there."""

    def __init__(self, ctx: StreamContext, text: str, voices: Sequence[Candidate]) -> None:
        self.cache = ctx.resources.speech_cache
        self._objects = ctx.resources.objects
        self.found: dict[SpeechKey, CachedSpeech] = {}
        self.flight: Flight | None = None
        self.joined = False
        self._ctx = ctx
        self.text = text
        self._voices = voices
        self._replay: Attempt[SpeechItem] | None = None
        sound = {name: voice for name, voice in voices if isinstance(voice, Voice)}
        cached = {name: voice.stored_as for name, voice in sound.items() if voice.stored_as is not None}
        text_sha256 = sha256_hex(text.encode()) if cached else ""
        self.keys = {name: SpeechKey(ctx.owner.app_id, text_sha256, voice) for name, voice in cached.items()}
        self._first = next(iter(sound), "")

    def voice(self, strategy: str) -> Voice:
        voice = dict(self._voices)[strategy]
        assert isinstance(voice, Voice), "a fault says nothing"
        return voice

    async def land(self, landing: Landing) -> None:
        if self.flight is not None:
            await self.flight.land(landing)

    async def go(self, stack: AsyncExitStack) -> None:
        """Find what is there. Without Valkey, all is as if nothing were cached."""
        if not self.keys:
            return
        try:
            if not await self._look(self._first):
                await self._join(stack)
        except StoreError as error:
            log.debug("speech.cache_away", error=str(error))
            self.keys = {}

    async def _join(self, stack: AsyncExitStack) -> None:
        """Lead, or wait for the leader: for half a stream's life, which leaves the other half to do it oneself."""
        key = self.keys.get(self._first)
        deadline = asyncio.get_running_loop().time() + self._ctx.longest_s / 2
        failures = 0
        while key is not None and failures < _FAILURES:
            try:
                async with asyncio.timeout_at(deadline):
                    joined = await stack.enter_async_context(self._ctx.resources.flights.join(key))
            except TimeoutError:
                return
            if isinstance(joined, Flight):
                self.flight = joined
                await self._look(self._first)  # another may have landed meanwhile
                return
            match joined.how:
                case "unshared":
                    return
                case "stored":
                    said = [name for name, own in self.keys.items() if own.voice == joined.voice]
                    if said and await self._look(said[0]):
                        self.joined = True
                        return
                    failures += 1
                case "failed":
                    failures += 1

    async def _look(self, strategy: str) -> bool:
        """Look all up, and read what `strategy` has: whether it can be said again."""
        self.found = await self.cache.find(list(dict.fromkeys(self.keys.values())))
        key = self.keys.get(strategy)
        if key is None or key not in self.found:
            return False
        speech = self.found[key]
        try:
            async with asyncio.timeout(READ_S):
                audio = await read(self._objects, speech)
        except (StoreError, ItemNotFound, TimeoutError) as error:
            log.info("speech.cache_unreadable", name=speech.name, error=str(error))
            del self.found[key]
            return False
        self._replay = replay(strategy, self._objects, speech, audio)
        return True

    def attempts(self) -> list[Attempt[SpeechItem]]:
        """In the order of the voices; what is cached is asked before its vendor."""
        if self._replay is not None:
            said = self._replay
            before = takewhile(lambda voice: voice[0] != said.strategy, self._voices)
            faults = [
                failed_attempt(name, "tts", fault) for name, fault in before if isinstance(fault, ServiceError)
            ]
            return [*faults, said]
        asked = {attempt.strategy: attempt for attempt in voice_attempts(dict(self._voices).items(), self.text)}
        attempts: list[Attempt[SpeechItem]] = []
        for name, _ in self._voices:
            if (key := self.keys.get(name)) in self.found:
                attempts.append(replay(name, self._objects, self.found[key]))
            attempts.append(asked[name])
        return attempts
