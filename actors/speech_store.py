"""Where spoken audio is kept, and under which names."""

from collections.abc import Collection
from dataclasses import dataclass

from actors.voice import SpokenFile
from storage.objects import ObjectStore, extension_of
from storage.speech_cache import viseme_key_of
from streams.wire.codec import dumps


@dataclass(frozen=True, slots=True)
class Kept:
    """Keys for rows, links for readers."""

    audio_key: str
    audio_url: str
    viseme_key: str | None = None
    viseme_url: str | None = None


async def keep(
    objects: ObjectStore, name: str, file: SpokenFile, *, need_viseme: bool, there: Collection[str] = ()
) -> Kept:
    """Store the audio under `name`, and beside it its mouth shapes where they are wanted and known.

    What is `there` is not written again.
    """
    audio_key = f"{name}.{extension_of(file.mime_type)}"
    if audio_key not in there:
        await objects.put(audio_key, file.whole(), content_type=file.mime_type)
    if not need_viseme or not file.visemes:
        return Kept(audio_key, objects.url(audio_key))
    viseme_key = viseme_key_of(name)
    if viseme_key not in there:
        visemes = [{"offset_ms": offset_ms, "viseme_id": viseme_id} for offset_ms, viseme_id in file.visemes]
        await objects.put(viseme_key, dumps(visemes), content_type="application/json")
    return Kept(audio_key, objects.url(audio_key), viseme_key, objects.url(viseme_key))
