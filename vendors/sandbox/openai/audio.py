"""OpenAI's chat completions with audio output: `modalities: ["text", "audio"]`.

A streamed answer that ends normally has no finish reason; its last chunk contains only `expires_at`.
"""

from base64 import b64encode
from secrets import token_hex
from time import time
from typing import Any

from streams.audio.audio import wav_header
from vendors.sandbox.calls import Call
from vendors.sandbox.content import PIECE_MS, mp3, reply, speech, speech_ms, words
from vendors.sandbox.openai.chat_request import ChatRequest
from vendors.sandbox.openai.chunks import Completion
from vendors.sandbox.openai.dialect import AUDIO_TOKEN_MS, DONE, EVENTS, SAMPLE_RATE

_WORDS_AHEAD = 4
"""The number of words by which the transcript is ahead of the audio."""
_KEPT_S = 3_600


async def speak(call: Call, request: ChatRequest) -> None:
    """Answer with speech, as a complete message or streamed in `delta.audio`."""
    all_words = words(_text(call, request))
    answer_words = all_words[: request.max_tokens]
    cut = len(answer_words) < len(all_words)
    if request.stream:
        await _stream(call, request, answer_words, cut=cut)
    else:
        await _whole(call, request, "".join(answer_words), cut=cut)


def _text(call: Call, request: ChatRequest) -> str:
    """Return the text to read aloud if the model is instructed to do so, otherwise a reply."""
    if call.key_options.text is not None:
        return call.key_options.text
    instructions = [message.content for message in request.messages if message.role == "system"]
    if any("word for word" in text for text in instructions):
        return request.messages[-1].content
    return reply(request.messages)


async def _whole(call: Call, request: ChatRequest, text: str, *, cut: bool) -> None:
    completion = Completion(request.model)
    audio = _encoded(call, text, request.audio_format or "")
    call.charge(output_tokens=len(text.split()), audio_tokens=speech_ms(text) // AUDIO_TOKEN_MS)
    answer = completion.complete(_audio(text, audio), call.billed, finish_reason="length" if cut else "stop")
    answer["choices"] += call.odd
    await call.answer(
        answer,
        empty=completion.complete({"content": ""}, call.billed, finish_reason="stop"),
    )


def _audio(text: str, audio: bytes) -> dict[str, Any]:
    data = b64encode(audio).decode()
    return {"audio": {"id": _id(), "expires_at": int(time()) + _KEPT_S, "data": data, "transcript": text}}


def _encoded(call: Call, text: str, audio_format: str) -> bytes:
    pcm = speech(text, SAMPLE_RATE)
    if audio_format not in {"pcm16", "wav", "mp3"}:
        call.unsupported(f"the audio format {audio_format} is not supported")
    if audio_format == "mp3":
        return mp3(pcm, SAMPLE_RATE)
    return pcm if audio_format == "pcm16" else wav_header(SAMPLE_RATE, data_bytes=len(pcm)) + pcm


async def _stream(call: Call, request: ChatRequest, answer_words: list[str], *, cut: bool) -> None:
    completion = Completion(request.model, include_usage=request.include_usage)
    text = "".join(answer_words)
    remaining = list(answer_words)
    audio = _odd_pieces(speech(text, SAMPLE_RATE)) if text.strip() else []
    async with call.stream(EVENTS) as flow:
        head = {"role": "assistant", "content": None, "refusal": None, "audio": {"id": _id(), "transcript": ""}}
        await flow.frame(completion.chunk(head))
        for index, piece in enumerate(audio):
            due = _WORDS_AHEAD + index * len(answer_words) // len(audio)
            while len(answer_words) - len(remaining) < due and remaining:
                await flow.frame(completion.chunk({"audio": {"transcript": remaining.pop(0)}}))
                call.charge(output_tokens=1)
            delta = {"audio": {"data": b64encode(piece).decode()}}
            await flow.output(completion.chunk(delta), audio_tokens=PIECE_MS // AUDIO_TOKEN_MS)
        last = {"index": 0, "delta": {"audio": {"expires_at": int(time()) + _KEPT_S}}}
        await flow.frame(completion.chunk_of([last | ({"finish_reason": "length"} if cut else {})]))
        if request.include_usage:
            await flow.frame(completion.usage_chunk(call.billed))
        await flow.frame(DONE)


def _odd_pieces(pcm: bytes) -> list[bytes]:
    """Split the audio into pieces that end in the middle of a sample."""
    size = SAMPLE_RATE * 2 * PIECE_MS // 1000 + 1
    return [pcm[begin : begin + size] for begin in range(0, len(pcm), size)]


def _id() -> str:
    return f"audio_{token_hex(12)}"
