"""Azure's speech to text and its assessment of pronunciation: over a socket while it is spoken, or a short file."""

import re
from dataclasses import dataclass
from typing import Any

from streams.audio import OGG, PCM, WAV, parse_wav, sniff
from vendors.sandbox.azure_dialect import (
    SOCKET,
    TICKS_PER_MS,
    Rejected,
    Talk,
    json_of,
    new_tag,
    plain,
    text_message,
)
from vendors.sandbox.azure_grading import Wanted, flat, graded, lexical
from vendors.sandbox.azure_segments import Segments, SpeechSegment
from vendors.sandbox.calls import Call
from vendors.sandbox.content import Recording, Timed, recording, timed_words
from vendors.sandbox.flow import Flow
from vendors.speech.azure_frames import Frame

_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Z][a-z]+)?-(?:[A-Z]{2}|\d{3})(?:-[a-z]+)?")
_MODES = frozenset({"interactive", "conversation", "dictation"})
_MOST_FRAME_BYTES = 8192
_MOST_S, _MOST_ASSESSED_S = 60, 30
_CONFIDENCE = 0.97


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be made of what is heard."""

    mode: str
    detailed: bool
    assessment: Wanted | None
    text: str | None

    def phrase(self, heard: SpeechSegment, number: int, *, last: bool) -> dict[str, Any]:
        """What is told of the phrase with that number, from 0."""
        parts = (self.text or "").split("|")
        text = " ".join(parts[number:]) if last else "".join(parts[number : number + 1])
        if self.text is None and self.assessment is not None:
            text = self.assessment.reference
        elif self.text is None:
            text = Recording((heard.end_ms - heard.begin_ms) / 1000, silent=False).transcript(None)
        times = _times(heard.begin_ms, heard.end_ms)
        if not text.strip():
            return {"Id": new_tag(), "RecognitionStatus": "NoMatch", **times}
        told = {"Id": new_tag(), "RecognitionStatus": "Success", **times, "Channel": 0, "DisplayText": text.strip()}
        return {**told, "NBest": [self._best(text.strip(), heard)]} if self.detailed else told

    def _best(self, text: str, heard: SpeechSegment) -> dict[str, Any]:
        spread = timed_words(text, heard.end_ms - heard.begin_ms)
        words = [
            Timed(word.text, word.at, heard.begin_ms + word.begin_ms, heard.begin_ms + word.end_ms)
            for word in spread
        ]
        plainly = " ".join(lexical(word.text) for word in words)
        best = {
            "Confidence": _CONFIDENCE,
            "Lexical": plainly,
            "ITN": plainly,
            "MaskedITN": plainly,
            "Display": text,
        }
        if self.assessment is not None:
            return best | graded(words, self.assessment, alone=self.mode == "interactive")
        return best | {
            "Words": [{"Word": lexical(word.text), **_times(word.begin_ms, word.end_ms)} for word in words]
        }


async def listen(call: Call) -> None:
    """A socket of either version: turn after turn, until the client leaves."""
    mode = call.request.match_info.get("mode")
    if mode is not None and not _connection_id(call):
        raise plain(400, "X-ConnectionId is missing or no UUID without dashes")
    if (language := call.request.query.get("language")) and not _LANGUAGE.fullmatch(language):
        raise plain(400, "Unsupported language")
    async with call.socket(SOCKET, protocols=("USP",)) as (socket, flow):
        said = Talk(socket)
        try:
            while (context := await said.next_turn()) is not None:
                await _turn(call, said, flow, context, mode=mode)
        except Rejected as fault:
            await socket.close(fault.close)


async def hear_file(call: Call) -> None:
    """`POST …/recognition/{mode}/cognitiveservices/v1`: a short file, one final result."""
    query, request = call.request.query, call.request
    if not _LANGUAGE.fullmatch(query.get("language", "")):
        raise plain(400, "The language query parameter is missing or unsupported")
    header = request.headers.get("Pronunciation-Assessment")
    try:
        wanted = Wanted.of_header(header) if header else None
    except ValueError as error:
        raise plain(400, f"Pronunciation-Assessment is invalid: {error}") from None
    audio = await request.read()
    found = recording(audio)
    if (
        not request.content_type.startswith(("audio/wav", "audio/ogg"))
        or sniff(audio) not in {WAV, OGG}
        or not found
    ):
        raise plain(400, "Unsupported audio format")
    if found.seconds > (_MOST_S if wanted is None else _MOST_ASSESSED_S):
        raise plain(400, "The audio is too long")
    call.charge(seconds=found.seconds)
    question = Question("interactive", query.get("format") == "detailed", wanted, call.orders.text)
    end_ms = round(found.seconds * 1000)
    nothing = {"RecognitionStatus": "NoMatch", "Offset": end_ms * TICKS_PER_MS, "Duration": 0}
    if found.silent:
        await call.answer(nothing | {"RecognitionStatus": "InitialSilenceTimeout"})
        return
    told = question.phrase(SpeechSegment(0, end_ms), 0, last=True)
    del told["Id"]
    if "NBest" in told:
        told["NBest"] = [flat(best) for best in told["NBest"]]
    await call.answer(told, empty=nothing)


async def _turn(call: Call, said: Talk, flow: Flow, context: Frame, *, mode: str | None) -> None:
    if context.path != "speech.context":
        raise Rejected(1002, f"{context.path} was not expected.")
    question = _question(call, json_of(context), mode)
    turn = context.request_id
    listener = _Listener(call, flow, question, turn)
    while not listener.over:
        frame = await said.next()
        if frame.path != "audio" or frame.request_id != turn:
            raise Rejected(1002, f"{frame.path} was not expected.")
        if len(frame.body) > _MOST_FRAME_BYTES:
            raise Rejected(1009, "The message is too large.")
        await listener.hear(frame)
    await flow.end()
    said.end_turn(turn)
    await flow.frame(text_message("turn.end", turn))


class _Listener:
    """One turn: its audio in, what is heard in it out."""

    def __init__(self, call: Call, flow: Flow, question: Question, turn: str) -> None:
        self.over = False
        self._call = call
        self._flow = flow
        self._question = question
        self._turn = turn
        self._segments: Segments | None = None
        self._phrases = 0

    async def hear(self, frame: Frame) -> None:
        audio = frame.body
        if self._segments is None:
            audio = await self._begin(audio)
        assert self._segments is not None, "it has begun"
        at_end = not frame.body
        self._call.charge(seconds=len(audio) / (2 * self._segments.sample_rate))
        for heard in self._segments.end() if at_end else self._segments.feed(audio):
            await self._tell(heard, last=at_end)
            if self.over:
                return
        if at_end:
            await self._close()

    async def _begin(self, audio: bytes) -> bytes:
        """Check the header, which comes first; what is behind it are samples."""
        try:
            told = parse_wav(audio)
        except ValueError:
            told = None
        if told is None or (told.format_tag, told.bits, told.channels) != (PCM, 16, 1):
            raise Rejected(1007, "Unsupported audio format.")
        self._segments = Segments(told.sample_rate)
        await self._say("turn.start", {"context": {"serviceTag": new_tag()}})
        return audio[told.data_offset :]

    async def _tell(self, heard: SpeechSegment, *, last: bool) -> None:
        begin = heard.begin_ms * TICKS_PER_MS
        if heard.begun:
            await self._say("speech.startDetected", {"Offset": begin})
        if not heard.ended:
            phrase = self._question.phrase(heard, self._phrases, last=False)
            words = str(phrase.get("DisplayText", "")).split()
            known = " ".join(words[: max(1, len(words) * (heard.end_ms - heard.begin_ms) // 2000)]).lower()
            told = {"Id": new_tag(), "Text": known, **_times(heard.begin_ms, heard.end_ms), "Channel": 0}
            await self._say("speech.hypothesis", told)
            return
        alone = self._question.mode == "interactive"
        await self._phrase(self._question.phrase(heard, self._phrases, last=last or alone))
        if alone:
            await self._say("speech.endDetected", {"Offset": heard.end_ms * TICKS_PER_MS})
            self.over = True

    async def _close(self) -> None:
        """No more audio."""
        assert self._segments is not None, "it has begun"
        end = self._segments.now_ms * TICKS_PER_MS
        if not self._phrases:
            nothing = {"RecognitionStatus": "InitialSilenceTimeout", "Offset": end, "Duration": 0}
            await self._phrase({"Id": new_tag(), **nothing})
        await self._say("speech.endDetected", {"Offset": end})
        if self._question.mode != "interactive":
            done = {"RecognitionStatus": "EndOfDictation", "Offset": end, "Duration": 0}
            await self._say("speech.phrase", {"Id": new_tag(), **done})
        self.over = True

    async def _phrase(self, phrase: dict[str, Any]) -> None:
        self._phrases += 1
        failed = {"Id": new_tag(), "RecognitionStatus": "Error", "Offset": 0, "Duration": 0}
        self._flow.error = text_message("speech.phrase", self._turn, failed)
        await self._flow.output(text_message("speech.phrase", self._turn, phrase))

    async def _say(self, path: str, body: dict[str, Any]) -> None:
        await self._flow.frame(text_message(path, self._turn, body))


def _question(call: Call, context: dict[str, Any], mode: str | None) -> Question:
    detection, output = context.get("phraseDetection") or {}, context.get("phraseOutput") or {}
    mode = str(mode or detection.get("mode", "")).lower()
    if mode not in _MODES:
        raise Rejected(1007, "phraseDetection.mode is required.")
    language = call.request.query.get("language") or detection.get("language")
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise Rejected(1007, "Unsupported language.")
    asked = (detection.get("enrichment") or {}).get("pronunciationAssessment")
    try:
        wanted = None if asked is None else Wanted.of(asked)
    except ValueError as error:
        raise Rejected(1007, f"pronunciationAssessment.{error} is invalid.") from None
    form = output.get("format") or call.request.query.get("format", "simple")
    call.asks(mode=mode, language=language, context=context)
    if wanted is not None:
        call.entry.stage = "assess"
    return Question(mode, str(form).lower() == "detailed" or wanted is not None, wanted, call.orders.text)


def _connection_id(call: Call) -> bool:
    given = call.request.headers.get("X-ConnectionId") or call.request.query.get("X-ConnectionId", "")
    return re.fullmatch("[0-9a-fA-F]{32}", given) is not None


def _times(begin_ms: int, end_ms: int) -> dict[str, int]:
    return {"Offset": begin_ms * TICKS_PER_MS, "Duration": (end_ms - begin_ms) * TICKS_PER_MS}
