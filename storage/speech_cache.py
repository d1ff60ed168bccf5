"""Speech that is kept to be said again: where its audio lies, and who is making it right now."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from storage.objects import extension_of
from storage.redis import Valkey, map_errors
from storage.speech_sweep import removed_later
from streams.wire.codec import dumps, loads
from streams.wire.ids import new_id, sha256_hex

_LEASE_S = 10.0
_TOLD_S = 10.0
_DAY_S = 24 * 60 * 60

Score = Sequence[int | Sequence[tuple[int, int]]]
"""A synthesis in the order in which it came: bytes of audio, or mouth shapes as (offset_ms, viseme_id)."""


@dataclass(frozen=True, slots=True)
class SpeechKey:
    """One text of an app in one voice; `voice` is a digest of all that shapes the sound."""

    app_id: str
    text_sha256: str
    voice: str

    def new_name(self) -> str:
        """For the objects of one synthesis. No two share a name: objects do not change once they are linked to."""
        return f"speech-cache/{self.app_id}/{sha256_hex((self.text_sha256 + self.voice).encode())}-{new_id()}"


@dataclass(frozen=True, slots=True)
class CachedSpeech:
    """A synthesis that can be said again. `name` is that of its objects, without the extension."""

    name: str
    mime_type: str
    sample_rate: int
    score: Score
    has_viseme_file: bool

    @property
    def audio_key(self) -> str:
        return f"{self.name}.{extension_of(self.mime_type)}"

    @property
    def object_keys(self) -> list[str]:
        return [self.audio_key, viseme_key_of(self.name)] if self.has_viseme_file else [self.audio_key]


def viseme_key_of(name: str) -> str:
    """Where the mouth shapes of `name` lie."""
    return f"{name}.json"


class SpeechCache:
    """All of one text lies in one slot of a cluster. Every method raises `StoreError` while Valkey is away.

    A leader that is not heard of for `lease_s` is dead.
    """

    def __init__(self, valkey: Valkey, *, lease_s: float = _LEASE_S) -> None:
        self.lease_s = lease_s
        self._valkey = valkey

    async def find(self, keys: Sequence[SpeechKey]) -> dict[SpeechKey, CachedSpeech]:
        """What is kept of `keys`, which are of one text."""
        with map_errors():
            found = await self._valkey.client.mget([self._key(key, "speech", key.voice) for key in keys])
        spoken = ((key, _decoded(raw)) for key, raw in zip(keys, found, strict=True) if raw is not None)
        return {key: speech for key, speech in spoken if speech is not None}

    async def announce(self, name: str, mime_type: str, *, days: float) -> None:
        """Before the objects `name` are stored: they are removed in time, whatever happens to who stores them."""
        keys = [f"{name}.{extension_of(mime_type)}", viseme_key_of(name)]
        await removed_later(self._valkey, keys, expire_s=_seconds(days))

    async def put(self, key: SpeechKey, speech: CachedSpeech, *, days: float) -> None:
        """Its objects are removed a day after it has expired, when no link to them opens any more."""
        await removed_later(self._valkey, speech.object_keys, expire_s=_seconds(days))
        with map_errors():
            await self._valkey.client.set(
                self._key(key, "speech", key.voice), dumps(asdict(speech)), ex=_seconds(days)
            )

    async def touch(self, key: SpeechKey, speech: CachedSpeech, *, days: float) -> None:
        """It was used: its days are counted from now."""
        await removed_later(self._valkey, speech.object_keys, expire_s=_seconds(days))
        with map_errors():
            await self._valkey.client.expire(self._key(key, "speech", key.voice), _seconds(days))

    async def take(self, key: SpeechKey, token: str) -> str | None:
        """Lead the flight of `key` for `lease_s`; the token of who leads it already, where there is one."""
        with map_errors():
            leader = await self._valkey.run("flight_take", keys=[self._flight(key)], args=[token, self._lease_ms])
        return None if leader is None else leader.decode()

    async def hold(self, key: SpeechKey, token: str) -> None:
        """Lead for another `lease_s`."""
        with map_errors():
            await self._valkey.run("flight_hold", keys=[self._flight(key)], args=[token, self._lease_ms])

    async def land(self, key: SpeechKey, token: str, told: str) -> None:
        """Lead no more, and leave word for those who wait; without words it is as if the leader had died."""
        with map_errors():
            await self._valkey.run(
                "flight_land",
                keys=[self._flight(key), self._key(key, "told", token)],
                args=[token, told, round(_TOLD_S * 1000)],
            )

    async def look(self, key: SpeechKey, token: str) -> tuple[bool, str | None]:
        """Whether `token` still leads, and what it has told."""
        with map_errors():
            leader, told = await self._valkey.client.mget([self._flight(key), self._key(key, "told", token)])
        return leader == token.encode(), told.decode() if isinstance(told, bytes) else None

    @property
    def _lease_ms(self) -> int:
        return round(self.lease_s * 1000)

    def _flight(self, key: SpeechKey) -> str:
        return self._key(key, "flight", key.voice)

    def _key(self, key: SpeechKey, *parts: str) -> str:
        return self._valkey.key(f"{key.app_id}:{key.text_sha256}", *parts)


def _seconds(days: float) -> int:
    return max(1, round(days * _DAY_S))


def _decoded(raw: bytes | str) -> CachedSpeech | None:
    """None where other code wrote it, in another form."""
    try:
        return CachedSpeech(**loads(raw))
    except (ValueError, TypeError):
        return None
