"""OpenAI's chat completions that are spoken: `modalities: ["text", "audio"]`.

A streamed one that ends well has no finish reason at all; its last chunk tells `expires_at` alone.
"""

from base64 import b64encode
from secrets import token_hex
from time import time
from typing import Any

from streams.audio import wav_header
from vendors.sandbox.calls import Call
from vendors.sandbox.content import PIECE_MS, mp3, reply, speech, speech_ms, words
from vendors.sandbox.openai_asked import Asked
from vendors.sandbox.openai_chunks import Completion
from vendors.sandbox.openai_dialect import AUDIO_TOKEN_MS, DONE, EVENTS, SAMPLE_RATE

_WORDS_AHEAD = 4
"""Transcribed before the audio begins; it stays ahead."""
_KEPT_S = 3_600


async def speak(call: Call, asked: Asked) -> None:
    """Answer in speech: all of it, or in the stream of `delta.audio`."""
    whole = words(_text(call, asked))
    said = whole[: asked.most_tokens]
    cut = len(said) < len(whole)
    if asked.stream:
        await _stream(call, asked, said, cut=cut)
    else:
        await _whole(call, asked, "".join(said), cut=cut)


def _text(call: Call, asked: Asked) -> str:
    """What is to be read, where that is what the model is told to do, else a reply."""
    if call.orders.text is not None:
        return call.orders.text
    told = [message.content for message in asked.messages if message.role == "system"]
    if any("word for word" in text for text in told):
        return asked.messages[-1].content
    return reply(asked.messages)


async def _whole(call: Call, asked: Asked, text: str, *, cut: bool) -> None:
    completion = Completion(asked.model)
    audio = _encoded(call, text, asked.audio_format or "")
    call.charge(output_tokens=len(text.split()), audio_tokens=speech_ms(text) // AUDIO_TOKEN_MS)
    await call.answer(
        completion.whole(_audio(text, audio), call.billed, finish_reason="length" if cut else "stop"),
        empty=completion.whole({"content": ""}, call.billed, finish_reason="stop"),
    )


def _audio(text: str, audio: bytes) -> dict[str, Any]:
    data = b64encode(audio).decode()
    return {"audio": {"id": _id(), "expires_at": int(time()) + _KEPT_S, "data": data, "transcript": text}}


def _encoded(call: Call, text: str, audio_format: str) -> bytes:
    pcm = speech(text, SAMPLE_RATE)
    if audio_format not in {"pcm16", "wav", "mp3"}:
        call.impossible(f"{audio_format} is not encoded here")
    if audio_format == "mp3":
        return mp3(pcm, SAMPLE_RATE)
    return pcm if audio_format == "pcm16" else wav_header(SAMPLE_RATE, data_bytes=len(pcm)) + pcm


async def _stream(call: Call, asked: Asked, said: list[str], *, cut: bool) -> None:
    completion = Completion(asked.model, include_usage=asked.include_usage)
    text = "".join(said)
    waiting = list(said)
    audio = _odd_pieces(speech(text, SAMPLE_RATE)) if text.strip() else []
    async with call.stream(EVENTS) as flow:
        head = {"role": "assistant", "content": None, "refusal": None, "audio": {"id": _id(), "transcript": ""}}
        await flow.frame(completion.chunk(head))
        for index, piece in enumerate(audio):
            due = _WORDS_AHEAD + index * len(said) // len(audio)
            while len(said) - len(waiting) < due and waiting:
                await flow.frame(completion.chunk({"audio": {"transcript": waiting.pop(0)}}))
                call.charge(output_tokens=1)
            delta = {"audio": {"data": b64encode(piece).decode()}}
            await flow.output(completion.chunk(delta), audio_tokens=PIECE_MS // AUDIO_TOKEN_MS)
        last = {"index": 0, "delta": {"audio": {"expires_at": int(time()) + _KEPT_S}}}
        await flow.frame(completion.chunk_of([last | ({"finish_reason": "length"} if cut else {})]))
        if asked.include_usage:
            await flow.frame(completion.usage_chunk(call.billed))
        await flow.frame(DONE)


def _odd_pieces(pcm: bytes) -> list[bytes]:
    """Pieces that end in the middle of a sample."""
    size = SAMPLE_RATE * 2 * PIECE_MS // 1000 + 1
    return [pcm[begin : begin + size] for begin in range(0, len(pcm), size)]


def _id() -> str:
    return f"audio_{token_hex(12)}"
