"""Azure's text to speech: over HTTP, and over a socket with mouth shapes and the times of words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from streams.audio import wav_header
from vendors.sandbox.azure_dialect import (
    SOCKET,
    TICKS_PER_MS,
    Rejected,
    Talk,
    audio_message,
    json_of,
    new_tag,
    plain,
    text_message,
)
from vendors.sandbox.calls import Call, Framing
from vendors.sandbox.content import PIECE_MS, pieces, speech, speech_ms, timed_words
from vendors.sandbox.flow import Flow
from vendors.speech.azure_frames import Frame
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
_MOST_BYTES = 64 * 1024
_MOST_MS = 600_000
_SPEAK = "{http://www.w3.org/2001/10/synthesis}"


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is said, and how it sounds."""

    text: str
    audio: bytes
    mime_type: str
    duration_ms: int


async def speak(call: Call) -> None:
    """`POST /cognitiveservices/v1`: markup in, audio out, no times."""
    if call.request.content_type != "application/ssml+xml":
        raise plain(415, "Content-Type must be application/ssml+xml")
    if not call.request.headers.get("User-Agent"):
        raise plain(400, "User-Agent is missing")
    try:
        spoken = _spoken(await call.request.read(), call.request.headers.get("X-Microsoft-OutputFormat", ""))
    except Rejected as fault:
        raise plain(400, fault.close.reason) from None
    _charge(call, spoken)
    async with call.stream(Framing(spoken.mime_type)) as flow:
        for piece in pieces(spoken.audio, spoken.duration_ms):
            await flow.output(piece)


async def list_voices(call: Call) -> None:
    await call.answer([_voice(name) for name in VOICES])


async def talk(call: Call) -> None:
    """A socket: turn after turn, until the client leaves."""
    async with call.socket(SOCKET, protocols=("USP",)) as (socket, flow):
        said = Talk(socket)
        try:
            while (context := await said.next_turn()) is not None:
                await _turn(call, said, flow, context)
        except Rejected as fault:
            await socket.close(fault.close)


async def _turn(call: Call, said: Talk, flow: Flow, context: Frame) -> None:
    if context.path != "synthesis.context":
        raise Rejected(1002, f"{context.path} was not expected.")
    markup = await said.next()
    if markup.path != "ssml" or markup.request_id != context.request_id:
        raise Rejected(1002, f"{markup.path} was not expected.")
    if len(markup.body) > _MOST_BYTES:
        raise Rejected(1007, "SSML is too large.")
    audio, wanted = _wishes(context)
    spoken = _spoken(markup.body, str(audio.get("outputFormat", "")))
    _charge(call, spoken)
    turn, stream = markup.request_id, new_tag()
    tag = {"context": {"serviceTag": new_tag()}}
    await flow.frame(text_message("turn.start", turn, tag))
    told = {**tag, "audio": {"type": "inline", "streamId": stream}}
    await flow.frame(text_message("response", turn, told))
    times = list(_times(spoken, wanted))
    for number, piece in enumerate(pieces(spoken.audio, spoken.duration_ms)):
        await flow.output(audio_message(turn, stream, piece, spoken.mime_type))
        # the service does not keep step: times come behind the audio that they belong to
        heard = (number + 1) * PIECE_MS * TICKS_PER_MS
        due = [item for item in times if item["Data"]["Offset"] < heard]
        times = times[len(due) :]
        if due:
            await flow.frame(text_message("audio.metadata", turn, {"Metadata": due}))
    if times:
        await flow.frame(text_message("audio.metadata", turn, {"Metadata": times}))
    await flow.frame(audio_message(turn, stream, b"", None))
    await flow.end()
    said.end_turn(turn)
    await flow.frame(text_message("turn.end", turn))


def _wishes(context: Frame) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        audio = json_of(context)["synthesis"]["audio"]
        return audio, dict(audio["metadataOptions"])
    except (KeyError, TypeError, ValueError):
        raise Rejected(1007, "synthesis.context is incomplete.") from None


def _times(spoken: Spoken, wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What is told of times, by their order."""
    told: list[dict[str, Any]] = []
    if wanted.get("visemeEnabled"):
        told += [
            _item("Viseme", shape.offset_ms, VisemeId=shape.viseme_id, IsLastAnimation=True)
            for shape in estimate(spoken.text, spoken.duration_ms)
        ]
    if wanted.get("wordBoundaryEnabled"):
        told += [
            _item(
                "WordBoundary",
                word.begin_ms,
                Duration=(word.end_ms - word.begin_ms) * TICKS_PER_MS,
                text={"Text": word.text, "Length": len(word.text), "BoundaryType": "WordBoundary"},
            )
            for word in timed_words(spoken.text, spoken.duration_ms)
        ]
    yield from sorted(told, key=lambda item: int(item["Data"]["Offset"]))
    if wanted.get("sessionEndEnabled"):
        yield _item("SessionEnd", spoken.duration_ms)


def _item(kind: str, offset_ms: int, **fields: Any) -> dict[str, Any]:
    return {"Type": kind, "Data": {"Offset": offset_ms * TICKS_PER_MS, **fields}}


def _charge(call: Call, spoken: Spoken) -> None:
    call.asks(text=spoken.text, format=spoken.mime_type)
    call.charge(characters=len(spoken.text))


def _spoken(markup: bytes, output_format: str) -> Spoken:
    """The audio of a document; what is wrong with it in the words of a socket's close."""
    try:
        root = ET.fromstring(markup)  # noqa: S314 - of a client on this machine
    except ET.ParseError as error:
        raise Rejected(1007, f"Ssml should be valid XML: {error}") from None
    voice = root.find(f"{_SPEAK}voice")
    if root.tag != f"{_SPEAK}speak" or voice is None:
        raise Rejected(1007, "Ssml should contain a voice.")
    name = voice.get("name", "")
    if name not in VOICES:
        raise Rejected(1007, f"Unsupported voice {name}.")
    known = _FORMATS.fullmatch(output_format)
    if known is None:
        raise Rejected(1007, "Unsupported audio format.")
    text = "".join(voice.itertext())
    speed = _speed(voice)
    rate = int(known["mp3khz"] or known["khz"]) * 1000
    duration_ms = min(_MOST_MS, speech_ms(text, speed=speed)) if text.strip() else 0
    pcm = speech(text, rate, speed=speed)[: duration_ms * rate // 1000 * 2]
    if known["kind"] == "riff":
        return Spoken(text, wav_header(rate, data_bytes=len(pcm)) + pcm, "audio/x-wav", duration_ms)
    if known["kind"] == "raw":
        return Spoken(text, pcm, "audio/basic", duration_ms)
    kbps = int(known["kbps"])
    if kbps not in _BIT_RATES[rate // 1000]:
        raise Rejected(1007, "Unsupported audio format.")
    return Spoken(text, _mp3(pcm, rate, kbps), "audio/mpeg", duration_ms)


def _mp3(pcm: bytes, rate: int, kbps: int) -> bytes:
    import lameenc  # noqa: PLC0415 - an extra

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
        return 1.0  # words such as `fast` are not taught here
    return min(2.0, max(0.5, speed))


def _voice(name: str) -> dict[str, Any]:
    locale, _, display = name.removesuffix("Neural").rpartition("-")
    return {
        "Name": f"Microsoft Server Speech Text to Speech Voice ({locale}, {display}Neural)",
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
