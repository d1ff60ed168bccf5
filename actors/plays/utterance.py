"""Speak one text with the first of several voices that succeeds.

Speech comes from the cache if it is there. Otherwise one stream calls the vendor for all that need the text.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, nullcontext
from itertools import takewhile

import structlog
from prometheus_client import Counter

from actors.clients.strategies import Voice
from actors.runtime.context import StreamContext
from actors.synthesis.flight import FAILED, UNSHARED, Flight, FlightResult
from actors.synthesis.replay import CACHE_VENDOR, READ_S, Recording, read, replay
from actors.synthesis.store import StoredSpeech, store_speech
from actors.synthesis.voice import SpokenFile, voice_attempts
from storage.conversations.speech_cache import CachedSpeech, SpeechKey
from storage.objects import ObjectStore
from streams.wire.errors import ItemNotFound, ServiceError, StoreError
from streams.wire.ids import sha256_hex
from vendors.calls.attempts import Attempt, failed_attempt
from vendors.calls.fallback import first_success
from vendors.protocols import SpeechItem

log = structlog.get_logger()
CACHE = Counter("parley_speech_cache", "Texts spoken by strategies that cache: hit, joined, miss", ["result"])

Candidate = tuple[str, Voice | ServiceError]
"""The name of a speech strategy, and its voice or the error that makes it unusable."""

_MAX_LEADER_FAILURES = 2
"""After this many failed leaders, a waiting stream calls the vendor itself, instead of queueing for a third one."""


@asynccontextmanager
async def open_utterance(ctx: StreamContext, text: str, voices: Sequence[Candidate]) -> AsyncIterator["Utterance"]:
    """Speak `text` with the first of `voices` that has output, or replay it from the cache.

    For a voice with a cache, only one stream at a time calls the vendor. Streams with the same first voice wait for
    its result, and use it if the voice that finally spoke is one of theirs.
    """
    async with AsyncExitStack() as stack:
        lookup = _CacheLookup(ctx, text, voices)
        with ctx.receipt.waiting():
            await lookup.run(stack)
            try:
                attempt, items = await stack.enter_async_context(first_success(lookup.attempts(), ctx.attempts))
            except ServiceError:
                await lookup.finish_flight(FAILED)
                raise
        utterance = Utterance(ctx.resources.objects, lookup, attempt)
        await utterance.begin()
        utterance.items = await stack.enter_async_context(aclosing(utterance.record(items)))
        try:
            yield utterance
        except ServiceError:
            await lookup.finish_flight(FAILED)
            raise
        await lookup.finish_flight(UNSHARED)


class Utterance:
    """The speech of one text: iterate over `items`, then call `store` or `share`."""

    items: AsyncIterator[SpeechItem]

    def __init__(self, objects: ObjectStore, lookup: "_CacheLookup", attempt: Attempt[SpeechItem]) -> None:
        self.strategy = attempt.strategy
        self._objects = objects
        self._lookup = lookup
        self._cached = attempt.vendor == CACHE_VENDOR
        self._key = lookup.keys.get(attempt.strategy)
        self._recording: Recording | None = None

    async def begin(self) -> None:
        """Start recording if the speech is to be cached. Otherwise finish the flight, so that no stream waits."""
        if self._cached and self._key is not None:
            CACHE.labels("joined" if self._lookup.joined else "hit").inc()
            await self._lookup.finish_flight(FlightResult("stored", self._key.voice))
        elif self._key is None:
            await self._lookup.finish_flight(UNSHARED)
        else:
            CACHE.labels("miss").inc()
            self._recording = Recording(self._lookup.text)

    async def record(self, items: AsyncIterator[SpeechItem]) -> AsyncGenerator[SpeechItem]:
        """Yield `items`, and record them if they are to be cached."""
        blocked = nullcontext if self._lookup.flight is None else self._lookup.flight.blocked
        async for item in items:
            if self._recording is not None and not self._recording.add(item):
                self._recording = None
                await self._lookup.finish_flight(UNSHARED)
            with blocked():
                yield item
        if self._recording is not None:
            self._recording.end()

    async def store(self, file: SpokenFile, name: str, *, need_viseme: bool) -> StoredSpeech:
        """Store the complete `file` as `name`, or in the cache if the strategy caches its speech."""
        if self._cached and self._key is not None:
            cached = self._lookup.cached_speech[self._key]
            existing_keys = cached.object_keys
            stored = await store_speech(
                self._objects, cached.name, file, need_viseme=need_viseme, existing_keys=existing_keys
            )
            await self._touch(self._key)
            return stored
        if self._key is None or self._recording is None or not self._recording.complete:
            return await store_speech(self._objects, name, file, need_viseme=need_viseme)
        cached_name = await self._announce(self._key, file)
        stored = await store_speech(self._objects, cached_name or name, file, need_viseme=need_viseme)
        if cached_name is not None:
            await self._publish(self._key, self._recording, cached_name, stored)
        return stored

    async def share(self) -> None:
        """Write the complete speech to the cache. If a store is unavailable, log it and continue."""
        if self._cached and self._key is not None:
            await self._touch(self._key)
        elif self._key is not None and self._recording is not None and self._recording.complete:
            file = self._recording.file
            need_viseme = self._lookup.voice(self.strategy).need_viseme
            if need_viseme:
                file.estimate_visemes()
            name = await self._announce(self._key, file)
            if name is None:
                return
            try:
                stored = await store_speech(self._objects, name, file, need_viseme=need_viseme)
            except StoreError as error:
                log.warning("speech.not_cached", strategy=self.strategy, error=str(error))
            else:
                await self._publish(self._key, self._recording, name, stored)

    async def _announce(self, key: SpeechKey, file: SpokenFile) -> str | None:
        """Register new objects for `file` in Valkey, which schedules their removal, and return their name.

        Return `None` if Valkey is unavailable: the objects would never be removed.
        """
        name = key.new_name()
        days = self._lookup.voice(self.strategy).config.cache_days
        try:
            await self._lookup.cache.announce(name, file.mime_type, days=days)
        except StoreError as error:
            log.warning("speech.not_cached", strategy=self.strategy, error=str(error))
            return None
        return name

    async def _publish(self, key: SpeechKey, recording: Recording, name: str, stored: StoredSpeech) -> None:
        audio_format = recording.file.format
        assert audio_format is not None, "a complete recording has a format"
        has_viseme_file = stored.viseme_key is not None
        speech = CachedSpeech(
            name, audio_format.mime_type, audio_format.sample_rate, recording.score, has_viseme_file
        )
        try:
            await self._lookup.cache.put(key, speech, days=self._lookup.voice(self.strategy).config.cache_days)
        except StoreError as error:
            log.warning("speech.not_cached", strategy=self.strategy, error=str(error))
        else:
            await self._lookup.finish_flight(FlightResult("stored", key.voice))

    async def _touch(self, key: SpeechKey) -> None:
        try:
            days = self._lookup.voice(self.strategy).config.cache_days
            await self._lookup.cache.touch(key, self._lookup.cached_speech[key], days=days)
        except StoreError as error:
            log.debug("speech.not_touched", strategy=self.strategy, error=str(error))


class _CacheLookup:
    """Looks up a text in the cache and, if it is missing, joins or leads the flight that synthesizes it."""

    def __init__(self, ctx: StreamContext, text: str, voices: Sequence[Candidate]) -> None:
        self.cache = ctx.resources.speech_cache
        self._objects = ctx.resources.objects
        self.cached_speech: dict[SpeechKey, CachedSpeech] = {}
        self.flight: Flight | None = None
        self.joined = False
        self._ctx = ctx
        self.text = text
        self._voices = voices
        self._replay: Attempt[SpeechItem] | None = None
        usable = {name: voice for name, voice in voices if isinstance(voice, Voice)}
        digests = {name: voice.cache_digest for name, voice in usable.items() if voice.cache_digest is not None}
        text_sha256 = sha256_hex(text.encode()) if digests else ""
        self.keys = {name: SpeechKey(ctx.owner.app_id, text_sha256, digest) for name, digest in digests.items()}
        self._first = next(iter(usable), "")

    def voice(self, strategy: str) -> Voice:
        voice = dict(self._voices)[strategy]
        assert isinstance(voice, Voice), "a broken voice has no attempt that succeeds"
        return voice

    async def finish_flight(self, result: FlightResult) -> None:
        """Publish the result to waiting streams, if this stream leads a flight."""
        if self.flight is not None:
            await self.flight.finish(result)

    async def run(self, stack: AsyncExitStack) -> None:
        """Look up the text, and join or lead a flight if it is missing. Without Valkey, caching is disabled."""
        if not self.keys:
            return
        try:
            if not await self._find(self._first):
                await self._join(stack)
        except StoreError as error:
            log.debug("speech.cache_unavailable", error=str(error))
            self.keys = {}

    async def _join(self, stack: AsyncExitStack) -> None:
        """Lead the flight, or wait for its leader.

        The wait ends after half of the maximum stream duration. The other half remains for calling the vendor.
        """
        key = self.keys.get(self._first)
        deadline = asyncio.get_running_loop().time() + self._ctx.max_stream_s / 2
        failures = 0
        while key is not None and failures < _MAX_LEADER_FAILURES:
            try:
                async with asyncio.timeout_at(deadline):
                    joined = await stack.enter_async_context(self._ctx.resources.flights.join(key))
            except TimeoutError:
                return
            if isinstance(joined, Flight):
                self.flight = joined
                await self._find(self._first)  # An earlier flight may have stored the speech meanwhile.
                return
            match joined.outcome:
                case "unshared":
                    return
                case "stored":
                    names = [name for name, key_of_name in self.keys.items() if key_of_name.voice == joined.voice]
                    if names and await self._find(names[0]):
                        self.joined = True
                        return
                    failures += 1
                case "failed":
                    failures += 1

    async def _find(self, strategy: str) -> bool:
        """Look up the text for all voices, and read the audio for `strategy`. Return whether it can be replayed."""
        self.cached_speech = await self.cache.find(list(dict.fromkeys(self.keys.values())))
        key = self.keys.get(strategy)
        if key is None or key not in self.cached_speech:
            return False
        speech = self.cached_speech[key]
        try:
            async with asyncio.timeout(READ_S):
                audio = await read(self._objects, speech)
        except (StoreError, ItemNotFound, TimeoutError) as error:
            log.info("speech.cache_unreadable", name=speech.name, error=str(error))
            del self.cached_speech[key]
            return False
        self._replay = replay(strategy, self._objects, speech, audio)
        return True

    def attempts(self) -> list[Attempt[SpeechItem]]:
        """Return the attempts in the order of the voices. For each voice, the cache comes before the vendor."""
        if self._replay is not None:
            replayed = self._replay
            before = takewhile(lambda voice: voice[0] != replayed.strategy, self._voices)
            failed = [
                failed_attempt(name, "tts", error) for name, error in before if isinstance(error, ServiceError)
            ]
            return [*failed, replayed]
        calls = {attempt.strategy: attempt for attempt in voice_attempts(dict(self._voices).items(), self.text)}
        attempts: list[Attempt[SpeechItem]] = []
        for name, _ in self._voices:
            if (key := self.keys.get(name)) in self.cached_speech:
                attempts.append(replay(name, self._objects, self.cached_speech[key]))
            attempts.append(calls[name])
        return attempts
