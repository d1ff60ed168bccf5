"""Azure's speech to text and pronunciation assessment: streamed over a socket, or a short file over HTTP."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from streams.audio.audio import PCM, parse_wav
from streams.audio.formats import sniff
from streams.audio.signatures import OGG, WAV
from vendors.sandbox.azure.dialect import (
    SOCKET,
    TICKS_PER_MS,
    ProtocolError,
    TurnReader,
    json_of,
    new_tag,
    odd_messages,
    plain_text,
    text_message,
)
from vendors.sandbox.azure.grading import AssessmentOptions, flatten, grade, lexical
from vendors.sandbox.azure.segments import Segments, SpeechSegment
from vendors.sandbox.calls import Call
from vendors.sandbox.content import Recording, Timed, recording, timed_words
from vendors.sandbox.flow import Flow
from vendors.speech.azure.frames import Frame
from vendors.speech.azure.languages import RECOGNITION

_MODES = frozenset({"interactive", "conversation", "dictation"})
_MAX_FRAME_BYTES = 8192
_MAX_S, _MAX_ASSESSED_S = 60, 30
_CONFIDENCE = 0.97


@dataclass(frozen=True, slots=True)
class RecognitionParameters:
    """The parameters of a recognition."""

    mode: str
    detailed: bool
    assessment: AssessmentOptions | None
    text: str | None

    def phrase(self, segment: SpeechSegment, number: int, *, last: bool) -> dict[str, Any]:
        """Return the result for phrase number `number`, counted from 0."""
        parts = (self.text or "").split("|")
        text = " ".join(parts[number:]) if last else "".join(parts[number : number + 1])
        if self.text is None and self.assessment is not None:
            text = self.assessment.reference
        elif self.text is None:
            text = Recording((segment.end_ms - segment.begin_ms) / 1000, silent=False).transcript(None)
        times = _times(segment.begin_ms, segment.end_ms)
        if not text.strip():
            return {"Id": new_tag(), "RecognitionStatus": "NoMatch", **times}
        result = {
            "Id": new_tag(),
            "RecognitionStatus": "Success",
            **times,
            "Channel": 0,
            "DisplayText": text.strip(),
        }
        return {**result, "NBest": [self._best(text.strip(), segment)]} if self.detailed else result

    def _best(self, text: str, segment: SpeechSegment) -> dict[str, Any]:
        spread = timed_words(text, segment.end_ms - segment.begin_ms)
        words = [
            Timed(word.text, word.at, segment.begin_ms + word.begin_ms, segment.begin_ms + word.end_ms)
            for word in spread
        ]
        lexical_text = " ".join(lexical(word.text) for word in words)
        best = {
            "Confidence": _CONFIDENCE,
            "Lexical": lexical_text,
            "ITN": lexical_text,
            "MaskedITN": lexical_text,
            "Display": text,
        }
        if self.assessment is not None:
            return best | grade(words, self.assessment, interactive=self.mode == "interactive")
        return best | {
            "Words": [{"Word": lexical(word.text), **_times(word.begin_ms, word.end_ms)} for word in words]
        }


async def recognize_stream(call: Call) -> None:
    """Serve a socket of either version, turn after turn, until the client leaves."""
    mode = call.request.match_info.get("mode")
    if mode is not None and not _connection_id(call):
        raise plain_text(400, "X-ConnectionId must be a UUID without dashes")
    if (language := call.request.query.get("language")) and language not in RECOGNITION.codes:
        raise plain_text(400, "Unsupported language")
    async with call.socket(SOCKET, protocols=("USP",)) as (socket, flow):
        turns = TurnReader(socket)
        try:
            while (context := await turns.next_turn()) is not None:
                await _turn(call, turns, flow, context, mode=mode)
        except ProtocolError as fault:
            await socket.close(fault.close)


async def recognize_file(call: Call) -> None:
    """Serve `POST …/recognition/{mode}/cognitiveservices/v1`: a short file with one final result."""
    query, request = call.request.query, call.request
    if query.get("language") not in RECOGNITION.codes:
        raise plain_text(400, "The language query parameter is missing or unsupported")
    header = request.headers.get("Pronunciation-Assessment")
    try:
        options = AssessmentOptions.of_header(header) if header else None
    except ValueError as error:
        raise plain_text(400, f"Pronunciation-Assessment is invalid: {error}") from None
    audio = await request.read()
    recorded = recording(audio)
    if (
        not request.content_type.startswith(("audio/wav", "audio/ogg"))
        or sniff(audio) not in {WAV, OGG}
        or not recorded
    ):
        raise plain_text(400, "Unsupported audio format")
    if recorded.seconds > (_MAX_S if options is None else _MAX_ASSESSED_S):
        raise plain_text(400, "The audio is too long")
    call.charge(seconds=recorded.seconds)
    parameters = RecognitionParameters(
        "interactive", query.get("format") == "detailed", options, call.key_options.text
    )
    end_ms = round(recorded.seconds * 1000)
    nothing = {"RecognitionStatus": "NoMatch", "Offset": end_ms * TICKS_PER_MS, "Duration": 0}
    if recorded.silent:
        await call.answer(nothing | {"RecognitionStatus": "InitialSilenceTimeout"})
        return
    result = parameters.phrase(SpeechSegment(0, end_ms), 0, last=True)
    del result["Id"]
    if "NBest" in result:
        result["NBest"] = [flatten(best) for best in result["NBest"]]
    if call.odd:
        result["NBest"] = [*result.get("NBest", []), *call.odd]
    await call.answer(result, empty=nothing)


async def _turn(call: Call, turns: TurnReader, flow: Flow, context: Frame, *, mode: str | None) -> None:
    if context.path != "speech.context":
        raise ProtocolError(1002, f"{context.path} was not expected.")
    parameters = _parameters(call, json_of(context), mode)
    turn = context.request_id
    flow.odd_frames = partial(odd_messages, turn)
    recognizer = _Recognizer(call, flow, parameters, turn)
    while not recognizer.ended:
        frame = await turns.next()
        if frame.path != "audio" or frame.request_id != turn:
            raise ProtocolError(1002, f"{frame.path} was not expected.")
        if len(frame.body) > _MAX_FRAME_BYTES:
            raise ProtocolError(1009, "The message is too large.")
        await recognizer.feed(frame)
    await flow.end()
    turns.end_turn(turn)
    await flow.frame(text_message("turn.end", turn))


class _Recognizer:
    """Recognizes the audio of one turn and sends the results."""

    def __init__(self, call: Call, flow: Flow, parameters: RecognitionParameters, turn: str) -> None:
        self.ended = False
        self._call = call
        self._flow = flow
        self._parameters = parameters
        self._turn = turn
        self._segments: Segments | None = None
        self._phrases = 0

    async def feed(self, frame: Frame) -> None:
        audio = frame.body
        if self._segments is None:
            audio = await self._begin(audio)
        assert self._segments is not None, "the turn has no audio yet"
        at_end = not frame.body
        self._call.charge(seconds=len(audio) / (2 * self._segments.sample_rate))
        for segment in self._segments.end() if at_end else self._segments.feed(audio):
            await self._report(segment, last=at_end)
            if self.ended:
                return
        if at_end:
            await self._close()

    async def _begin(self, audio: bytes) -> bytes:
        """Check the WAV header at the beginning, and return the samples after it."""
        try:
            header = parse_wav(audio)
        except ValueError:
            header = None
        if header is None or (header.format_tag, header.bits, header.channels) != (PCM, 16, 1):
            raise ProtocolError(1007, "Unsupported audio format.")
        self._segments = Segments(header.sample_rate)
        await self._send("turn.start", {"context": {"serviceTag": new_tag()}})
        return audio[header.data_offset :]

    async def _report(self, segment: SpeechSegment, *, last: bool) -> None:
        begin = segment.begin_ms * TICKS_PER_MS
        if segment.begun:
            await self._send("speech.startDetected", {"Offset": begin})
        if not segment.ended:
            phrase = self._parameters.phrase(segment, self._phrases, last=False)
            words = str(phrase.get("DisplayText", "")).split()
            partial_text = " ".join(
                words[: max(1, len(words) * (segment.end_ms - segment.begin_ms) // 2000)]
            ).lower()
            hypothesis = {
                "Id": new_tag(),
                "Text": partial_text,
                **_times(segment.begin_ms, segment.end_ms),
                "Channel": 0,
            }
            await self._send("speech.hypothesis", hypothesis)
            return
        interactive = self._parameters.mode == "interactive"
        await self._phrase(self._parameters.phrase(segment, self._phrases, last=last or interactive))
        if interactive:
            await self._send("speech.endDetected", {"Offset": segment.end_ms * TICKS_PER_MS})
            self.ended = True

    async def _close(self) -> None:
        """Send the last results after the end of the audio."""
        assert self._segments is not None, "the turn has no audio yet"
        end = self._segments.now_ms * TICKS_PER_MS
        if not self._phrases:
            nothing = {"RecognitionStatus": "InitialSilenceTimeout", "Offset": end, "Duration": 0}
            await self._phrase({"Id": new_tag(), **nothing})
        await self._send("speech.endDetected", {"Offset": end})
        if self._parameters.mode != "interactive":
            done = {"RecognitionStatus": "EndOfDictation", "Offset": end, "Duration": 0}
            await self._send("speech.phrase", {"Id": new_tag(), **done})
        self.ended = True

    async def _phrase(self, phrase: dict[str, Any]) -> None:
        self._phrases += 1
        failed = {"Id": new_tag(), "RecognitionStatus": "Error", "Offset": 0, "Duration": 0}
        self._flow.error = text_message("speech.phrase", self._turn, failed)
        await self._flow.output(text_message("speech.phrase", self._turn, phrase))

    async def _send(self, path: str, body: dict[str, Any]) -> None:
        await self._flow.frame(text_message(path, self._turn, body))


def _parameters(call: Call, context: dict[str, Any], mode: str | None) -> RecognitionParameters:
    detection, output = context.get("phraseDetection") or {}, context.get("phraseOutput") or {}
    mode = str(mode or detection.get("mode", "")).lower()
    if mode not in _MODES:
        raise ProtocolError(1007, "phraseDetection.mode is required.")
    language = call.request.query.get("language") or detection.get("language")
    if not isinstance(language, str) or language not in RECOGNITION.codes:
        raise ProtocolError(1007, "Unsupported language.")
    parameters = (detection.get("enrichment") or {}).get("pronunciationAssessment")
    try:
        options = None if parameters is None else AssessmentOptions.of(parameters)
    except ValueError as error:
        raise ProtocolError(1007, f"pronunciationAssessment.{error} is invalid.") from None
    form = output.get("format") or call.request.query.get("format", "simple")
    call.record(mode=mode, language=language, context=context)
    if options is not None:
        call.entry.stage = "assess"
    return RecognitionParameters(
        mode, str(form).lower() == "detailed" or options is not None, options, call.key_options.text
    )


def _connection_id(call: Call) -> bool:
    connection_id = call.request.headers.get("X-ConnectionId") or call.request.query.get("X-ConnectionId", "")
    return re.fullmatch("[0-9a-fA-F]{32}", connection_id) is not None


def _times(begin_ms: int, end_ms: int) -> dict[str, int]:
    return {"Offset": begin_ms * TICKS_PER_MS, "Duration": (end_ms - begin_ms) * TICKS_PER_MS}
