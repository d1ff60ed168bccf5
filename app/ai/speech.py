"""The text-to-speech endpoint (§4.19)."""

from functools import partial
from typing import Annotated

from aiohttp import web
from pydantic import AfterValidator, Field

from actors.clients.strategies import SpeechOverrides
from actors.plays.speech import SpeechPlan, speak
from app.ai.opening import idempotency_key_of, open_stream
from app.ai.streams import serve, serve_existing
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from app.http.rows.replies import DeferredResponse
from storage.conversations.admission import StreamLocation
from streams.languages import MAX_CHARACTERS, well_formed
from streams.wire.errors import TooLarge
from streams.wire.model import Model, not_blank
from vendors.catalog import SYNTHESIZERS


def _validate_platform(platform: str) -> str:
    if platform not in SYNTHESIZERS.vendors:
        raise ValueError(f"must be one of {', '.join(SYNTHESIZERS.vendors)}")
    return platform


def _language(code: str) -> str:
    """Validate a language code. An empty one overrides nothing."""
    return well_formed(code) if code else code


class PlatformParams(Model):
    """Overrides for the settings of all strategies on one platform."""

    platform: Annotated[str, AfterValidator(_validate_platform)]
    """The vendor, such as `vendor_a_audio`, to whose strategies this applies."""
    voice: str | None = Field(default=None, max_length=256)
    prompt: str | None = Field(default=None, max_length=4096)
    speed: float | None = Field(default=None, ge=0.25, le=4.0)
    language_code: Annotated[str, AfterValidator(_language)] | None = Field(default=None, max_length=MAX_CHARACTERS)
    need_viseme: bool | None = None


class TtsRequest(Model):
    text: Annotated[str, AfterValidator(not_blank)]
    strategies: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=16)
    """Names of speech strategies, tried in this order unless the app has its own (`strategy_order`)."""
    platform_params: list[PlatformParams] | None = Field(default=None, max_length=32)
    """If a platform occurs more than once, its last entry applies."""


async def tts(call: Call, body: Body[TtsRequest]) -> web.StreamResponse | DeferredResponse:
    """Synthesize speech from a text.

    The response is an event stream with the audio in pieces, followed by a link to the complete audio. Strategies
    are tried in order until one produces audio. A repeated request with the same `Idempotency-Key` gets the same
    stream.
    """
    if len(body.text) > call.app_limits.tts_characters:
        raise TooLarge("text exceeds maximum length limit")
    voices = call.services.strategies.voices(call.app_id, body.strategies, _overrides(body.platform_params or []))
    play = partial(speak, plan=SpeechPlan(body.text, voices))
    opened = await open_stream(call, "tts", play, idempotency_key=idempotency_key_of(call, body))
    if isinstance(opened, StreamLocation):
        return await serve_existing(call, opened)
    opened.ctx.input.end()
    return serve(call, opened)


def _overrides(platform_params: list[PlatformParams]) -> dict[str, SpeechOverrides]:
    return {
        params.platform: SpeechOverrides(
            voice=params.voice,
            prompt=params.prompt,
            speed=params.speed,
            language_code=params.language_code,
            need_viseme=params.need_viseme,
        )
        for params in platform_params
    }
