"""Plays a cell of the fault scorecard, and judges it by what the client got and what the sandbox saw."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256

from bench.failover_cells import DEFAULT_APP, Cell, NotPossible, Outcome
from bench.failover_client import ClientOutcome, asked, history
from bench.failover_stand import ANSWER, FIRST, SECOND, Stand, sound
from vendors.sandbox.bill import Entry

CLOSES_WITHIN_MS = 1_000
_TRIES = 3
LAST = frozenset({"end", "error"})


async def judge(stand: Stand, cell: Cell) -> list[str]:
    """What is wrong in a cell that can be: nothing, if all is well. Its faulty strategy is offered already."""
    assert not isinstance(cell.expected, NotPossible), "it can be played"
    alone, together = await asyncio.gather(
        _judged(stand, cell, [cell.name]), _judged(stand, cell, [cell.name, sound(cell.lane)])
    )
    return [*(f"alone: {what}" for what in alone), *(f"with a second: {what}" for what in together)]


async def _judged(stand: Stand, cell: Cell, strategies: Sequence[str]) -> list[str]:
    for _ in range(_TRIES):
        answer = await asked(stand, cell.lane, cell.app, strategies)
        if not cell.waits or any(entry.key == cell.name for entry in stand.calls(answer.request_id)):
            break  # else the machine was so busy that the time was over before the call began
    return [
        *_shape(answer),
        *await _outcome(stand, cell, strategies, answer),
        *await _record(stand, cell, strategies, answer),
        *await _calls(stand, cell, strategies, answer),
    ]


def _shape(answer: ClientOutcome) -> list[str]:
    """One stream: every id, one last event, a digest that is right, segments that are their chunks."""
    if answer.broken:
        return [answer.broken]
    if answer.reply:
        return _reply_shape(answer)
    names = [event.name for event in answer.events]
    wrong = []
    if [event.id for event in answer.events] != list(range(1, len(names) + 1)):
        wrong.append(f"ids {[event.id for event in answer.events]}")
    if sum(name in LAST for name in names) != 1 or answer.last.name not in LAST or names[0] != "start":
        wrong.append(f"events {names}")
    if answer.last.name == "end":
        said = answer.text.encode() + answer.audio
        digest = {"chars": len(answer.text), "sha256": sha256(said).hexdigest()}
        if answer.last.content["digest"] != digest:
            wrong.append(f"digest {answer.last.content['digest']}, and it was {digest}")
    chunks = answer.named("assistant_output_chunk")
    for segment in answer.named("assistant_output_content_segment"):
        joined = "".join(chunk["text"] for chunk in chunks if chunk["index"] == segment["index"])
        wrong += [] if joined == segment["text"] else [f"segment {segment}"]
    return wrong


def _reply_shape(answer: ClientOutcome) -> list[str]:
    status = {"backend unavailable": 502, "invalid_parameter": 400, None: 200}[answer.error.get("error_type")]
    keys = {"error"} if answer.error else {"text", "raw_data", "unit_price", "strategy"}
    right = (answer.status, set(answer.reply), answer.events) == (status, keys, [])
    return [] if right else [f"the reply is {answer.status} {answer.reply}"]


async def _outcome(stand: Stand, cell: Cell, strategies: Sequence[str], answer: ClientOutcome) -> list[str]:
    if answer.broken:
        return []
    match cell.expected:
        case Outcome.FALLS_BACK if len(strategies) == 1:
            return _all_failed(cell, answer)
        case Outcome.FALLS_BACK:
            return _fell_back(cell, strategies, answer, await _whole(stand, cell))
        case Outcome.TOO_SLOW if len(strategies) > 1:
            return _fell_back(cell, strategies, answer, await _whole(stand, cell))
        case Outcome.BREAKS_OFF | Outcome.TOO_SLOW:
            return _broke_off(answer, FIRST if cell.lane.stage == "llm" else await _whole(stand, cell))
        case _:
            told = (answer.error.get("error_type"), answer.error.get("message"))
            right = ("invalid_parameter", "invalid_parameter: no speech was heard")
            return [] if told == right else [f"no speech, and it ended in {answer.last}"]


async def _whole(stand: Stand, cell: Cell) -> str | bytes:
    """What the second says; in a voice's lane the first says the same."""
    lane = cell.lane
    if lane.stage != "tts":
        return SECOND
    if lane.name not in stand.sound_audio:
        stand.sound_audio[lane.name] = (await asked(stand, lane, DEFAULT_APP, [sound(lane)])).audio
    return stand.sound_audio[lane.name]


def _all_failed(cell: Cell, answer: ClientOutcome) -> list[str]:
    error = answer.error
    attempts = error.get("extra", {}).get("attempts", [])
    told = [(attempt["strategy"], attempt["stage"], attempt["error_type"]) for attempt in attempts]
    word, each = "all_strategies_failed", "backend_unavailable"
    if answer.reply:
        word = each = "backend unavailable"  # as JSON bodies write it
    wrong = []
    if error.get("error_type") != word:
        wrong.append(f"it ended in {answer.last}")
    if told != [(cell.name, cell.lane.stage, each)]:
        wrong.append(f"attempts {told}")
    if answer.text or answer.audio:
        wrong.append("something was said")
    return wrong


def _fell_back(cell: Cell, strategies: Sequence[str], answer: ClientOutcome, whole: str | bytes) -> list[str]:
    if cell.lane.stage == "assess":
        right = (answer.reply.get("text"), answer.reply.get("strategy")) == (whole, f"{strategies[0]}.both")
        return [] if right else [f"the reply is {answer.reply}"]
    if answer.last.name != "end":
        return [f"it did not fall back: {answer.last}"]
    got: str | bytes = answer.audio if cell.lane.stage == "tts" else answer.text
    winner = strategies[1]
    if cell.lane.stage == "stt":
        got, winner = "".join(answer.named("user_input")), strategies[0]  # who answers is no part of this
    wrong = [] if got == whole else [f"it is not the second's whole answer: {got[-100:]!r}"]
    if cell.lane.stage == "stt" and answer.text != ANSWER:
        wrong.append(f"the model said {answer.text}")
    if answer.last.content["strategy"] != winner:
        wrong.append(f"end.strategy {answer.last.content['strategy']}")
    return wrong


def _broke_off(answer: ClientOutcome, whole: str | bytes) -> list[str]:
    part: str | bytes = answer.text if isinstance(whole, str) else answer.audio
    beginning: str | bytes = whole[: len(part)]
    wrong = []
    if answer.error.get("error_type") != "backend_unavailable":
        wrong.append(f"it ended in {answer.last}")
    if not 0 < len(part) < len(whole) or beginning != part:
        wrong.append(f"{len(part)} of {len(whole)} were said, or not the beginning")
    if answer.named("assistant_output_content_segment") or answer.named("audio"):
        wrong.append("a part is told as whole")
    return wrong


async def _record(stand: Stand, cell: Cell, strategies: Sequence[str], answer: ClientOutcome) -> list[str]:
    """What the conversation keeps of the turn."""
    if not answer.conversation_id or answer.broken:
        return []
    kept = await history(stand, cell.app, answer.conversation_id)
    right = _right_record(cell, strategies, answer)
    return [] if kept == right else [f"the record is {kept}, and should be {right}"]


def _right_record(cell: Cell, strategies: Sequence[str], answer: ClientOutcome) -> list[str]:
    falls_back, alone = cell.expected is Outcome.FALLS_BACK, len(strategies) == 1
    if cell.lane.stage == "stt":
        return ["complete", SECOND, ANSWER] if falls_back and not alone else []
    if falls_back:
        return ["failed", "Say something."] if alone else ["complete", "Say something.", SECOND]
    return ["incomplete", "Say something.", answer.text]


async def _calls(stand: Stand, cell: Cell, strategies: Sequence[str], answer: ClientOutcome) -> list[str]:
    """As the sandbox saw it: as many calls as there should be, each ended as it should and soon enough."""
    closed = await stand.ended(answer.request_id, within_s=CLOSES_WITHIN_MS / 1000)
    wrong = [] if closed else ["a call is still open"]
    calls = stand.calls(answer.request_id)
    made = [entry for entry in calls if entry.key == cell.name]
    if len(made) != cell.row.calls:
        wrong.append(f"{len(made)} calls, and there should be {cell.row.calls}")
    wrong += [f"a call ended by {entry.how}" for entry in made if entry.ended and entry.how not in cell.row.ended]
    wrong += [f"a call ended {late_ms:.0f} ms late" for entry in calls if (late_ms := _late_ms(entry, answer))]
    seconds = sum(entry.key == sound(cell.lane) for entry in calls)
    due = int(cell.expected in {Outcome.FALLS_BACK, Outcome.TOO_SLOW} and len(strategies) > 1)
    return wrong if seconds == due else [*wrong, f"the second was asked {seconds} times, and not {due}"]


def _late_ms(entry: Entry, answer: ClientOutcome) -> float:
    """How much later than allowed behind the stream's end."""
    return max(0.0, (entry.ended or 0) - answer.ended_ms - CLOSES_WITHIN_MS) if answer.ended_ms else 0.0
