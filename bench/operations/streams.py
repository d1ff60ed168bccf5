"""Streams: turns of a conversation, and text to speech."""

from typing import Any

from bench.operations.kinds import Ask, Kind
from bench.operations.testbed import DURABLE, FIRST, SPEECH, SPOKEN, OperationsTestbed

AT_ONCE = 100
"""The number of streams at a time, as many as there are users."""
CONVERSATION, TTS = "/bp/ai/conversation", "/bp/ai/audio/tts"
TEXT = "How are you today? I would like to hear a story."


def parameters(strategy: str, conversation_id: str = "") -> dict[str, Any]:
    body: dict[str, Any] = {
        "strategies": [strategy],
        "type": "text",
        "language_code": "en-US",
        "target_language_code": "en-US",
    }
    return {**body, "conversation_id": conversation_id} if conversation_id else body


def _turns(testbed: OperationsTestbed, strategy: str, *, cut: bool = False) -> Ask:
    async def ask(number: int) -> int:
        user = testbed.users[number % AT_ONCE]
        return (await testbed.stream(user, CONVERSATION, parameters(strategy), text=TEXT, cut=cut)).size

    return ask


async def _new(testbed: OperationsTestbed, _calls: int) -> Ask:
    return _turns(testbed, testbed.model)


async def _further(testbed: OperationsTestbed, _calls: int) -> Ask:
    """Begin a conversation of each user. Each call adds a turn to it."""
    begun: dict[int, str] = {}
    for number in range(AT_ONCE):
        user, body = testbed.users[number], parameters(FIRST)
        begun[number] = (await testbed.stream(user, CONVERSATION, body, text=TEXT)).conversation_id

    async def ask(number: int) -> int:
        user, body = testbed.users[number % AT_ONCE], parameters(testbed.model, begun[number % AT_ONCE])
        return (await testbed.stream(user, CONVERSATION, body, text=TEXT)).size

    return ask


async def _cut(testbed: OperationsTestbed, _calls: int) -> Ask:
    return _turns(testbed, testbed.model, cut=True)


async def _durable(testbed: OperationsTestbed, _calls: int) -> Ask:
    return _turns(testbed, DURABLE)


async def _spoken(testbed: OperationsTestbed, _calls: int) -> Ask:
    return _turns(testbed, SPOKEN)


async def _speech(testbed: OperationsTestbed, _calls: int) -> Ask:
    async def ask(number: int) -> int:
        # Equal texts of streams at the same time would be synthesized once.
        body = {"strategies": [SPEECH], "text": f"{TEXT} {number}"}
        return (await testbed.stream(testbed.users[number % AT_ONCE], TTS, body)).size

    return ask


STREAMS = (
    Kind("turn, new conversation", _new, AT_ONCE),
    Kind("turn, further", _further, AT_ONCE),
    Kind("turn, cut once and resumed", _cut, AT_ONCE),
    Kind("turn, `durable`", _durable, AT_ONCE),
    Kind("turn, with speech", _spoken, AT_ONCE),
    Kind("text to speech", _speech, AT_ONCE),
)
