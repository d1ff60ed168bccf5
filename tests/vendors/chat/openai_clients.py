"""Clients of OpenAI's protocol, each with one call to the sandbox."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from pydantic import SecretStr

from streams.input_buffer import InputBuffer
from vendors.account import Account, ChatSpec, RecognitionSpec, SpeechSpec
from vendors.chat.openai import OpenAIChat
from vendors.chat.openai_audio import OpenAIAudio
from vendors.http.transport import VendorHttp
from vendors.protocols import (
    AudioBytes,
    AudioFormat,
    ChatMessage,
    TextDelta,
    Transcript,
)
from vendors.sandbox.content import speech
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running
from vendors.speech.openai import OpenAITranscription
from vendors.speech.openai_speech import OpenAISpeech

Opened = AbstractAsyncContextManager[AsyncIterator[Any]]
Ask = Callable[[VendorHttp, Account], Opened]

TEXT = "The boats go out with the tide, and nobody is in a hurry to be back."
PCM = AudioFormat("audio/pcm", 16_000)


def account(sandbox: Running, platform: str = "vendor_b_llm", **key_options: object) -> Account:
    return Account("main", platform, f"{sandbox.url}/openai/v1", SecretStr(key_of(**key_options)))


def chat(http: VendorHttp, to: Account) -> Opened:
    return OpenAIChat(http, to, ChatSpec("gpt-4o")).reply([ChatMessage("user", "repeat 20 words")])


def voice(**spec: Any) -> Ask:
    settings = SpeechSpec(**{"model": "gpt-4o-mini-tts", **spec})
    return lambda http, to: OpenAISpeech(http, to, settings).speak(TEXT)


def spoken_chat(**spec: Any) -> Ask:
    settings = SpeechSpec(**{"model": "gpt-audio", **spec})
    return lambda http, to: OpenAIAudio(http, to, settings).speak(TEXT)


def recognition(**spec: Any) -> Ask:
    settings = RecognitionSpec(**{"model": "gpt-4o-transcribe", **spec})

    def ask(http: VendorHttp, to: Account) -> Opened:
        buffer = InputBuffer()
        buffer.write(speech("Good morning to you all.", 16_000))
        buffer.end()
        return OpenAITranscription(http, to, settings).transcribe(buffer, PCM)

    return ask


STREAMS: dict[str, Ask] = {
    "chat": chat,
    "speech_events": voice(),
    "speech_events_wav": voice(audio_format="wav"),
    "spoken_chat_wav": spoken_chat(audio_format="wav"),
    "recognition_streamed": recognition(),
}
"""Event streams, in which every fault can occur."""

BODIES: dict[str, Ask] = {
    "speech_body": voice(model="tts-1"),
    "speech_body_wav": voice(model="tts-1", audio_format="wav"),
}

WHOLES: dict[str, Ask] = {
    "spoken_chat_mp3": spoken_chat(),
    "recognition": recognition(model="whisper-1"),
    "recognition_verbose": recognition(model="whisper-1", options={"response_format": "verbose_json"}),
}

CLIENTS = STREAMS | BODIES | WHOLES
PATHS = [name for name in CLIENTS if name not in {"speech_events_wav", "speech_body_wav", "recognition_verbose"}]
"""One client of each kind of request and response. The others differ in the format of what they return."""


def is_output(item: Any) -> bool:
    """Return whether an item is output, after which a stream does not fall back. Partial transcripts are output."""
    return bool(item.text if isinstance(item, TextDelta | Transcript) else getattr(item, "audio", b""))


def output(items: list[Any]) -> str | bytes:
    """Return the joined output, or the last transcript."""
    texts = [item.text for item in items if isinstance(item, TextDelta)]
    transcripts = [item.text for item in items if isinstance(item, Transcript)]
    return (
        "".join(texts)
        or "".join(transcripts[-1:])
        or b"".join(item.audio for item in items if type(item) is AudioBytes)
    )


async def collect(opened: Opened, into: list[Any]) -> list[Any]:
    async with opened as items:
        async for item in items:
            into.append(item)  # noqa: PERF401 - kept when reading fails, too
    return into
