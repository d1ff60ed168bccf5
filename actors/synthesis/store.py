"""Store synthesized audio and its mouth shapes as objects."""

from collections.abc import Collection
from dataclasses import dataclass

from actors.synthesis.voice import SpokenFile
from storage.conversations.speech_cache import viseme_key_of
from storage.objects import ObjectStore, extension_of
from streams.wire.codec import dumps


@dataclass(frozen=True, slots=True)
class StoredSpeech:
    """The stored objects of one synthesis: keys for database rows, and links for clients."""

    audio_key: str
    audio_url: str
    viseme_key: str | None = None
    viseme_url: str | None = None


async def store_speech(
    objects: ObjectStore, name: str, file: SpokenFile, *, need_viseme: bool, existing_keys: Collection[str] = ()
) -> StoredSpeech:
    """Store the audio as `name` plus extension, and its mouth shapes if `need_viseme` is set and they are known.

    Objects in `existing_keys` are not written again.
    """
    audio_key = f"{name}.{extension_of(file.mime_type)}"
    if audio_key not in existing_keys:
        await objects.put(audio_key, file.whole(), content_type=file.mime_type)
    if not need_viseme or not file.visemes:
        return StoredSpeech(audio_key, objects.url(audio_key))
    viseme_key = viseme_key_of(name)
    if viseme_key not in existing_keys:
        visemes = [{"offset_ms": offset_ms, "viseme_id": viseme_id} for offset_ms, viseme_id in file.visemes]
        await objects.put(viseme_key, dumps(visemes), content_type="application/json")
    return StoredSpeech(audio_key, objects.url(audio_key), viseme_key, objects.url(viseme_key))
