"""Run a cell of the fault scorecard, and judge it by what the client and the sandbox observed."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256

from bench.failover.cells import DEFAULT_APP, Cell, NotPossible, Outcome
from bench.failover.client import ClientOutcome, history, request_stream
from bench.failover.testbed import ANSWER, FIRST, SECOND, FaultTestbed, healthy_strategy
from vendors.sandbox.bill import BilledCall

CLOSES_WITHIN_MS = 1_000
_TRIES = 3
LAST = frozenset({"end", "error"})


async def judge(testbed: FaultTestbed, cell: Cell) -> list[str]:
    """Run a cell that is possible, and return its problems; an empty list if it passes.

    The cell's faulty strategy must be configured already.
    """
    assert not isinstance(cell.expected, NotPossible), "the cell is not possible"
    alone, together = await asyncio.gather(
        _run_and_judge(testbed, cell, [cell.name]),
        _run_and_judge(testbed, cell, [cell.name, healthy_strategy(cell.vendor_stage)]),
    )
    return [
        *(f"alone: {problem}" for problem in alone),
        *(f"with a second strategy: {problem}" for problem in together),
    ]


async def _run_and_judge(testbed: FaultTestbed, cell: Cell, strategies: Sequence[str]) -> list[str]:
    for _ in range(_TRIES):
        outcome = await request_stream(testbed, cell.vendor_stage, cell.app, strategies)
        if not cell.times_out or any(entry.key == cell.name for entry in testbed.calls(outcome.request_id)):
            break  # Otherwise the machine was so busy that the timeout expired before the call began.
    return [
        *_judge_shape(outcome),
        *await _judge_outcome(testbed, cell, strategies, outcome),
        *await _judge_record(testbed, cell, strategies, outcome),
        *await _judge_calls(testbed, cell, strategies, outcome),
    ]


def _judge_shape(outcome: ClientOutcome) -> list[str]:
    """Check one stream: ids without a gap, one last event, the digest, segments that equal their chunks."""
    if outcome.broken:
        return [outcome.broken]
    if outcome.reply:
        return _judge_reply(outcome)
    names = [event.name for event in outcome.events]
    problems = []
    if [event.id for event in outcome.events] != list(range(1, len(names) + 1)):
        problems.append(f"ids {[event.id for event in outcome.events]}")
    if sum(name in LAST for name in names) != 1 or outcome.last.name not in LAST or names[0] != "start":
        problems.append(f"events {names}")
    if outcome.last.name == "end":
        output = outcome.text.encode() + outcome.audio
        digest = {"chars": len(outcome.text), "sha256": sha256(output).hexdigest()}
        if outcome.last.content["digest"] != digest:
            problems.append(
                f"the digest of `end` is {outcome.last.content['digest']}, of the received content {digest}"
            )
    chunks = outcome.named("assistant_output_chunk")
    for segment in outcome.named("assistant_output_content_segment"):
        joined = "".join(chunk["text"] for chunk in chunks if chunk["index"] == segment["index"])
        problems += [] if joined == segment["text"] else [f"segment {segment}"]
    return problems


def _judge_reply(outcome: ClientOutcome) -> list[str]:
    status = {"backend unavailable": 502, "invalid_parameter": 400, None: 200}[outcome.error.get("error_type")]
    keys = {"error"} if outcome.error else {"text", "raw_data", "unit_price", "strategy"}
    correct = (outcome.status, set(outcome.reply), outcome.events) == (status, keys, [])
    return [] if correct else [f"the reply is {outcome.status} {outcome.reply}"]


async def _judge_outcome(
    testbed: FaultTestbed, cell: Cell, strategies: Sequence[str], outcome: ClientOutcome
) -> list[str]:
    if outcome.broken:
        return []
    match cell.expected:
        case Outcome.FALLS_BACK if len(strategies) == 1:
            return _judge_all_failed(cell, outcome)
        case Outcome.FALLS_BACK:
            return _judge_fallback(cell, strategies, outcome, await _complete_answer(testbed, cell))
        case Outcome.TOO_SLOW if len(strategies) > 1:
            return _judge_fallback(cell, strategies, outcome, await _complete_answer(testbed, cell))
        case Outcome.BREAKS_OFF | Outcome.TOO_SLOW:
            return _judge_break(
                outcome, FIRST if cell.vendor_stage.stage == "llm" else await _complete_answer(testbed, cell)
            )
        case _:
            actual = (outcome.error.get("error_type"), outcome.error.get("message"))
            expected = ("invalid_parameter", "invalid_parameter: no speech was heard")
            return [] if actual == expected else [f"no speech, and the stream ended with {outcome.last}"]


async def _complete_answer(testbed: FaultTestbed, cell: Cell) -> str | bytes:
    """Return the complete answer of the second strategy. For voices, the first strategy's would be the same."""
    vendor_stage = cell.vendor_stage
    if vendor_stage.stage != "tts":
        return SECOND
    if vendor_stage.name not in testbed.healthy_audio:
        testbed.healthy_audio[vendor_stage.name] = (
            await request_stream(testbed, vendor_stage, DEFAULT_APP, [healthy_strategy(vendor_stage)])
        ).audio
    return testbed.healthy_audio[vendor_stage.name]


def _judge_all_failed(cell: Cell, outcome: ClientOutcome) -> list[str]:
    error = outcome.error
    attempts = error.get("extra", {}).get("attempts", [])
    actual = [(attempt["strategy"], attempt["stage"], attempt["error_type"]) for attempt in attempts]
    error_type, attempt_error = "all_strategies_failed", "backend_unavailable"
    if outcome.reply:
        error_type = attempt_error = "backend unavailable"  # JSON bodies write it with a space.
    problems = []
    if error.get("error_type") != error_type:
        problems.append(f"the stream ended with {outcome.last}")
    if actual != [(cell.name, cell.vendor_stage.stage, attempt_error)]:
        problems.append(f"attempts {actual}")
    if outcome.text or outcome.audio:
        problems.append("the client received output")
    return problems


def _judge_fallback(
    cell: Cell, strategies: Sequence[str], outcome: ClientOutcome, complete: str | bytes
) -> list[str]:
    if cell.vendor_stage.stage == "assess":
        correct = (outcome.reply.get("text"), outcome.reply.get("strategy")) == (complete, f"{strategies[0]}.both")
        return [] if correct else [f"the reply is {outcome.reply}"]
    if outcome.last.name != "end":
        return [f"the stream did not fall back: {outcome.last}"]
    received: str | bytes = outcome.audio if cell.vendor_stage.stage == "tts" else outcome.text
    winner = strategies[1]
    if cell.vendor_stage.stage == "stt":
        received, winner = (
            "".join(outcome.named("user_input")),
            strategies[0],
        )  # The language model of the first strategy answers.
    problems = (
        [] if received == complete else [f"not the complete answer of the second strategy: {received[-100:]!r}"]
    )
    if cell.vendor_stage.stage == "stt" and outcome.text != ANSWER:
        problems.append(f"the model said {outcome.text}")
    if outcome.last.content["strategy"] != winner:
        problems.append(f"`strategy` of `end` is {outcome.last.content['strategy']}")
    return problems


def _judge_break(outcome: ClientOutcome, complete: str | bytes) -> list[str]:
    part: str | bytes = outcome.text if isinstance(complete, str) else outcome.audio
    beginning: str | bytes = complete[: len(part)]
    problems = []
    if outcome.error.get("error_type") != "backend_unavailable":
        problems.append(f"the stream ended with {outcome.last}")
    if not 0 < len(part) < len(complete) or beginning != part:
        problems.append(f"the client received {len(part)} of {len(complete)}, or not the beginning")
    if outcome.named("assistant_output_content_segment") or outcome.named("audio"):
        problems.append("an incomplete part was marked as complete")
    return problems


async def _judge_record(
    testbed: FaultTestbed, cell: Cell, strategies: Sequence[str], outcome: ClientOutcome
) -> list[str]:
    """Check the stored record of the turn."""
    if not outcome.conversation_id or outcome.broken:
        return []
    record = await history(testbed, cell.app, outcome.conversation_id)
    expected = _expected_record(cell, strategies, outcome)
    return [] if record == expected else [f"the record is {record}, expected {expected}"]


def _expected_record(cell: Cell, strategies: Sequence[str], outcome: ClientOutcome) -> list[str]:
    falls_back, alone = cell.expected is Outcome.FALLS_BACK, len(strategies) == 1
    if cell.vendor_stage.stage == "stt":
        return ["complete", SECOND, ANSWER] if falls_back and not alone else []
    if falls_back:
        return ["failed", "Say something."] if alone else ["complete", "Say something.", SECOND]
    return ["incomplete", "Say something.", outcome.text]


async def _judge_calls(
    testbed: FaultTestbed, cell: Cell, strategies: Sequence[str], outcome: ClientOutcome
) -> list[str]:
    """Check the calls in the sandbox: their number, how each ended, and when."""
    closed = await testbed.ended(outcome.request_id, within_s=CLOSES_WITHIN_MS / 1000)
    problems = [] if closed else ["a call is still open"]
    calls = testbed.calls(outcome.request_id)
    cell_calls = [entry for entry in calls if entry.key == cell.name]
    if len(cell_calls) != cell.row.calls:
        problems.append(f"{len(cell_calls)} calls, expected {cell.row.calls}")
    problems += [
        f"a call ended with {entry.how}" for entry in cell_calls if entry.ended and entry.how not in cell.row.ended
    ]
    problems += [f"a call ended {late_ms:.0f} ms late" for entry in calls if (late_ms := _late_ms(entry, outcome))]
    healthy_calls = sum(entry.key == healthy_strategy(cell.vendor_stage) for entry in calls)
    expected_calls = int(cell.expected in {Outcome.FALLS_BACK, Outcome.TOO_SLOW} and len(strategies) > 1)
    return (
        problems
        if healthy_calls == expected_calls
        else [*problems, f"{healthy_calls} calls of the second strategy, expected {expected_calls}"]
    )


def _late_ms(entry: BilledCall, outcome: ClientOutcome) -> float:
    """Return by how many milliseconds a call ended too late after the end of the stream."""
    return max(0.0, (entry.ended or 0) - outcome.ended_ms - CLOSES_WITHIN_MS) if outcome.ended_ms else 0.0
