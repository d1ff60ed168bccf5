"""Azure's text to speech: over HTTP, and over a socket with visemes and word boundaries."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from xml.etree import ElementTree as ET

from streams.audio.audio import wav_header
from vendors.sandbox.azure.dialect import (
    SOCKET,
    TICKS_PER_MS,
    ProtocolError,
    TurnReader,
    audio_message,
    json_of,
    new_tag,
    odd_messages,
    plain_text,
    text_message,
)
from vendors.sandbox.calls import Call, Framing
from vendors.sandbox.content import PIECE_MS, pieces, speech, speech_ms, timed_words
from vendors.sandbox.flow import Flow
from vendors.speech.azure.frames import Frame
from vendors.speech.visemes import estimate

VOICES = (
    "en-US-JennyNeural", "en-US-AvaMultilingualNeural", "en-GB-SoniaNeural", "de-DE-KatjaNeural",
    "fr-FR-DeniseNeural", "es-ES-ElviraNeural", "ja-JP-NanamiNeural", "zh-CN-XiaoxiaoNeural",
)  # fmt: skip
_FORMATS = re.compile(
    r"(?P<mp3>audio)-(?P<mp3khz>16|24|48)khz-(?P<kbps>32|48|64|96|128|160|192)kbitrate-mono-mp3"
    r"|(?P<kind>raw|riff)-(?P<khz>8|16|24|48)khz-16bit-mono-pcm"
)
_BIT_RATES = {16: (32, 64, 128), 24: (48, 96, 160), 48: (96, 192)}
_MAX_BYTES = 64 * 1024
_MAX_MS = 600_000
_SPEAK = "{http://www.w3.org/2001/10/synthesis}"


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The audio of a text."""

    text: str
    audio: bytes
    mime_type: str
    duration_ms: int


async def synthesize(call: Call) -> None:
    """Serve `POST /cognitiveservices/v1`: SSML in, audio out, without visemes."""
    if call.request.content_type != "application/ssml+xml":
        raise plain_text(415, "Content-Type must be application/ssml+xml")
    if not call.request.headers.get("User-Agent"):
        raise plain_text(400, "User-Agent is missing")
    try:
        synthesis = _synthesize(await call.request.read(), call.request.headers.get("X-Microsoft-OutputFormat", ""))
    except ProtocolError as fault:
        raise plain_text(400, fault.close.reason) from None
    _charge(call, synthesis)
    async with call.stream(Framing(synthesis.mime_type)) as flow:
        for piece in pieces(synthesis.audio, synthesis.duration_ms):
            await flow.output(piece)


async def list_voices(call: Call) -> None:
    await call.answer([_voice(name) for name in VOICES])


async def synthesize_stream(call: Call) -> None:
    """Serve a socket, turn after turn, until the client leaves."""
    async with call.socket(SOCKET, protocols=("USP",)) as (socket, flow):
        turns = TurnReader(socket)
        try:
            while (context := await turns.next_turn()) is not None:
                await _turn(call, turns, flow, context)
        except ProtocolError as fault:
            await socket.close(fault.close)


async def _turn(call: Call, turns: TurnReader, flow: Flow, context: Frame) -> None:
    if context.path != "synthesis.context":
        raise ProtocolError(1002, f"{context.path} was not expected.")
    markup = await turns.next()
    if markup.path != "ssml" or markup.request_id != context.request_id:
        raise ProtocolError(1002, f"{markup.path} was not expected.")
    if len(markup.body) > _MAX_BYTES:
        raise ProtocolError(1007, "SSML is too large.")
    audio, options = _options(context)
    synthesis = _synthesize(markup.body, str(audio.get("outputFormat", "")))
    _charge(call, synthesis)
    turn, stream = markup.request_id, new_tag()
    flow.odd_frames = partial(odd_messages, turn)
    tag = {"context": {"serviceTag": new_tag()}}
    await flow.frame(text_message("turn.start", turn, tag))
    response = {**tag, "audio": {"type": "inline", "streamId": stream}}
    await flow.frame(text_message("response", turn, response))
    times = list(_times(synthesis, options))
    for number, piece in enumerate(pieces(synthesis.audio, synthesis.duration_ms)):
        await flow.output(audio_message(turn, stream, piece, synthesis.mime_type))
        # As in the real service, metadata arrives after the audio that it belongs to.
        reached = (number + 1) * PIECE_MS * TICKS_PER_MS
        due = [item for item in times if item["Data"]["Offset"] < reached]
        times = times[len(due) :]
        if due:
            await flow.frame(text_message("audio.metadata", turn, {"Metadata": due}))
    if times:
        await flow.frame(text_message("audio.metadata", turn, {"Metadata": times}))
    await flow.frame(audio_message(turn, stream, b"", None))
    await flow.end()
    turns.end_turn(turn)
    await flow.frame(text_message("turn.end", turn))


def _options(context: Frame) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        audio = json_of(context)["synthesis"]["audio"]
        return audio, dict(audio["metadataOptions"])
    except (KeyError, TypeError, ValueError):
        raise ProtocolError(1007, "synthesis.context is incomplete.") from None


def _times(synthesis: Synthesis, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the requested metadata, ordered by time."""
    items: list[dict[str, Any]] = []
    if options.get("visemeEnabled"):
        items += [
            _item("Viseme", shape.offset_ms, VisemeId=shape.viseme_id, IsLastAnimation=True)
            for shape in estimate(synthesis.text, synthesis.duration_ms)
        ]
    if options.get("wordBoundaryEnabled"):
        items += [
            _item(
                "WordBoundary",
                word.begin_ms,
                Duration=(word.end_ms - word.begin_ms) * TICKS_PER_MS,
                text={"Text": word.text, "Length": len(word.text), "BoundaryType": "WordBoundary"},
            )
            for word in timed_words(synthesis.text, synthesis.duration_ms)
        ]
    yield from sorted(items, key=lambda item: int(item["Data"]["Offset"]))
    if options.get("sessionEndEnabled"):
        yield _item("SessionEnd", synthesis.duration_ms)


def _item(kind: str, offset_ms: int, **fields: Any) -> dict[str, Any]:
    return {"Type": kind, "Data": {"Offset": offset_ms * TICKS_PER_MS, **fields}}


def _charge(call: Call, synthesis: Synthesis) -> None:
    call.record(text=synthesis.text, format=synthesis.mime_type)
    call.charge(characters=len(synthesis.text))


def _synthesize(markup: bytes, output_format: str) -> Synthesis:
    """Synthesize an SSML document. Raise `ProtocolError` if the document or the format is invalid."""
    try:
        root = ET.fromstring(markup)  # noqa: S314 - the sandbox is for tests on this machine
    except ET.ParseError as error:
        raise ProtocolError(1007, f"Ssml should be valid XML: {error}") from None
    voice = root.find(f"{_SPEAK}voice")
    if root.tag != f"{_SPEAK}speak" or voice is None:
        raise ProtocolError(1007, "Ssml should contain a voice.")
    name = voice.get("name", "")
    if name not in VOICES:
        raise ProtocolError(1007, f"Unsupported voice {name}.")
    match = _FORMATS.fullmatch(output_format)
    if match is None:
        raise ProtocolError(1007, "Unsupported audio format.")
    text = "".join(voice.itertext())
    speed = _speed(voice)
    rate = int(match["mp3khz"] or match["khz"]) * 1000
    duration_ms = min(_MAX_MS, speech_ms(text, speed=speed)) if text.strip() else 0
    pcm = speech(text, rate, speed=speed)[: duration_ms * rate // 1000 * 2]
    if match["kind"] == "riff":
        return Synthesis(text, wav_header(rate, data_bytes=len(pcm)) + pcm, "audio/x-wav", duration_ms)
    if match["kind"] == "raw":
        return Synthesis(text, pcm, "audio/basic", duration_ms)
    kbps = int(match["kbps"])
    if kbps not in _BIT_RATES[rate // 1000]:
        raise ProtocolError(1007, "Unsupported audio format.")
    return Synthesis(text, _mp3(pcm, rate, kbps), "audio/mpeg", duration_ms)


def _mp3(pcm: bytes, rate: int, kbps: int) -> bytes:
    import lameenc  # noqa: PLC0415 - an optional dependency

    if not pcm:
        return b""
    lame = lameenc.Encoder()
    lame.silence()
    lame.set_bit_rate(kbps)
    lame.set_in_sample_rate(rate)
    lame.set_out_sample_rate(rate)
    lame.set_channels(1)
    return bytes(lame.encode(pcm)) + bytes(lame.flush())


def _speed(voice: ET.Element) -> float:
    prosody = next(voice.iter(f"{_SPEAK}prosody"), None)
    rate = prosody.get("rate", "") if prosody is not None else ""
    if not rate:
        return 1.0
    try:
        speed = 1 + float(rate[:-1]) / 100 if rate.endswith("%") else float(rate)
    except ValueError:
        return 1.0  # Names such as `fast` are not supported.
    return min(2.0, max(0.5, speed))


def _voice(name: str) -> dict[str, Any]:
    locale, _, display = name.removesuffix("Neural").rpartition("-")
    return {
        "Name": f"Microsoft Server Synthesis Text to Synthesis Voice ({locale}, {display}Neural)",
        "DisplayName": display,
        "LocalName": display,
        "ShortName": name,
        "Gender": "Female",
        "Locale": locale,
        "LocaleName": locale,
        "SampleRateHertz": "24000",
        "VoiceType": "Neural",
        "Status": "GA",
    }
