"""Text to speech (§4.19)."""

from functools import partial
from typing import Annotated

from aiohttp import web
from pydantic import AfterValidator, Field

from actors.speech import SpeechPlan, speak
from actors.strategies import SpeechWish
from app.ai.opening import StreamSpec, asked_under_key, open_actor
from app.ai.streams import serve, serve_again
from app.http.endpoint import Call, DeferredResponse
from storage.admission import StreamLocation
from streams.wire.errors import TooLarge
from streams.wire.model import Model, not_blank
from vendors.catalog import SPEECH_PLATFORMS


def _known(platform: str) -> str:
    if platform not in SPEECH_PLATFORMS:
        raise ValueError(f"must be one of {', '.join(SPEECH_PLATFORMS)}")
    return platform


class PlatformParams(Model):
    """What goes over the settings of strategies on one platform."""

    platform: Annotated[str, AfterValidator(_known)]
    voice: str | None = Field(default=None, max_length=256)
    prompt: str | None = Field(default=None, max_length=4096)
    speed: float | None = Field(default=None, ge=0.25, le=4.0)
    language_code: str | None = Field(default=None, max_length=35)
    need_viseme: bool | None = None


class TtsRequest(Model):
    text: Annotated[str, AfterValidator(not_blank)]
    strategies: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=16)
    """Names of speech strategies, tried in order."""
    platform_params: list[PlatformParams] | None = Field(default=None, max_length=32)
    """Of one platform the last entry holds."""


async def tts(call: Call, body: TtsRequest) -> web.StreamResponse | DeferredResponse:
    """Speak a text.

    The answer is an event stream of audio, then a link to the whole. Strategies are tried in order until one has
    sent audio. Asked again under the same `Idempotency-Key`, it is the same stream, spoken once.
    """
    if len(body.text) > call.app_limits.tts_characters:
        raise TooLarge("text exceeds maximum length limit")
    voices = call.services.strategies.voices(call.app_id, body.strategies, _wishes(body.platform_params or []))
    asked = asked_under_key(call, body)
    play = partial(speak, plan=SpeechPlan(body.text, voices))
    opened = await open_actor(call, StreamSpec("tts", play, asked=asked))
    if isinstance(opened, StreamLocation):
        return await serve_again(call, opened)
    opened.ctx.input.end()
    return serve(call, opened)


def _wishes(params: list[PlatformParams]) -> dict[str, SpeechWish]:
    return {
        given.platform: SpeechWish(
            voice=given.voice,
            prompt=given.prompt,
            speed=given.speed,
            language_code=given.language_code,
            need_viseme=given.need_viseme,
        )
        for given in params
    }
