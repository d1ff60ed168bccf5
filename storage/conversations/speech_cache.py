"""Cache of synthesized speech: where its audio is stored, and which stream is synthesizing it right now.

Several streams that need the same speech at the same time share one synthesis, a flight: one stream leads it and
the others wait for its result.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from storage.conversations.speech_sweep import schedule_removal
from storage.objects import extension_of
from storage.valkey.client import Valkey, map_errors
from streams.wire.codec import dumps, loads
from streams.wire.ids import new_id, sha256_hex

_LEASE_S = 10.0
_RESULT_S = 10.0
_DAY_S = 24 * 60 * 60

Score = Sequence[int | Sequence[tuple[int, int]]]
"""The items of a synthesis in their order: a size of audio in bytes, or visemes as (offset_ms, viseme_id)."""


@dataclass(frozen=True, slots=True)
class SpeechKey:
    """Identifies speech: an app, a text and a voice. `voice` is a digest of all settings that affect the sound."""

    app_id: str
    text_sha256: str
    voice: str

    def new_name(self) -> str:
        """Return a new unique name for the objects of one synthesis. Existing objects are never overwritten."""
        return f"speech-cache/{self.app_id}/{sha256_hex((self.text_sha256 + self.voice).encode())}-{new_id()}"


@dataclass(frozen=True, slots=True)
class CachedSpeech:
    """A stored synthesis. `name` is the key of its objects without the extension."""

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
    """Return the key of the object that holds the visemes of `name`."""
    return f"{name}.json"


class SpeechCache:
    """Stored speech and flights in Valkey. All methods raise `StoreError` if Valkey is unavailable.

    A leader that does not renew its lease for `lease_s` is considered dead. All keys of one text are in the same
    slot of a cluster.
    """

    def __init__(self, valkey: Valkey, *, lease_s: float = _LEASE_S) -> None:
        self.lease_s = lease_s
        self._valkey = valkey

    async def find(self, keys: Sequence[SpeechKey]) -> dict[SpeechKey, CachedSpeech]:
        """Return the stored speech for those of `keys` that have any. All keys must be of the same text."""
        with map_errors():
            values = await self._valkey.client.mget([self._key(key, "speech", key.voice) for key in keys])
        decoded = ((key, _decoded(raw)) for key, raw in zip(keys, values, strict=True) if raw is not None)
        return {key: speech for key, speech in decoded if speech is not None}

    async def announce(self, name: str, mime_type: str, *, days: float) -> None:
        """Schedule the removal of the objects `name`. Called before they are stored, in case the process dies."""
        keys = [f"{name}.{extension_of(mime_type)}", viseme_key_of(name)]
        await schedule_removal(self._valkey, keys, expire_s=_seconds(days))

    async def put(self, key: SpeechKey, speech: CachedSpeech, *, days: float) -> None:
        """Store `speech` for `days`. Its objects are removed when all links to them have expired."""
        await schedule_removal(self._valkey, speech.object_keys, expire_s=_seconds(days))
        with map_errors():
            await self._valkey.client.set(
                self._key(key, "speech", key.voice), dumps(asdict(speech)), ex=_seconds(days)
            )

    async def touch(self, key: SpeechKey, speech: CachedSpeech, *, days: float) -> None:
        """Extend the lifetime of `speech` to `days` from now, because it was used."""
        await schedule_removal(self._valkey, speech.object_keys, expire_s=_seconds(days))
        with map_errors():
            await self._valkey.client.expire(self._key(key, "speech", key.voice), _seconds(days))

    async def try_to_lead(self, key: SpeechKey, token: str) -> str | None:
        """Become the leader of the flight of `key` for `lease_s`.

        Returns the token of the current leader if there is one already, otherwise `None`.
        """
        with map_errors():
            leader = await self._valkey.run("flight_lead", keys=[self._flight(key)], args=[token, self._lease_ms])
        return None if leader is None else leader.decode()

    async def renew_lease(self, key: SpeechKey, token: str) -> None:
        """Renew the lease of the leader for another `lease_s`."""
        with map_errors():
            await self._valkey.run("flight_renew", keys=[self._flight(key)], args=[token, self._lease_ms])

    async def end_flight(self, key: SpeechKey, token: str, result: str) -> None:
        """End the flight and publish `result` for those who wait. If it is empty, the leader looks dead to them."""
        with map_errors():
            await self._valkey.run(
                "flight_end",
                keys=[self._flight(key), self._key(key, "result", token)],
                args=[token, result, round(_RESULT_S * 1000)],
            )

    async def read_flight(self, key: SpeechKey, token: str) -> tuple[bool, str | None]:
        """Return whether `token` still leads the flight, and the result that it has published, if any."""
        with map_errors():
            leader, result = await self._valkey.client.mget([self._flight(key), self._key(key, "result", token)])
        return leader == token.encode(), result.decode() if isinstance(result, bytes) else None

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
    """Return `None` if another version of this server wrote the value in another format."""
    try:
        return CachedSpeech(**loads(raw))
    except (ValueError, TypeError):
        return None
