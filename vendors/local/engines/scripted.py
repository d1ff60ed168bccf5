"""A scripted model: always available, and deterministic for the same messages.

The last user message selects the reply. The first match counts:

- `repeat N words`: `word1 word2 … wordN`, N at most 10,000;
- a *story*, optionally `about` something: four paragraphs of two or three sentences, with blank lines between;
- `what did I say`: the user's earlier messages;
- `what are your instructions`: the system messages;
- `who are you`: a statement that it is a script;
- a greeting of at most four words: a greeting;
- anything else: `You said: ` and the message.

It emits one word every `pace_ms` milliseconds (0: without delay): the request's field `pace_ms`, else the number in
a model name such as `scripted:0`, else the server's default. Tokens are words; all messages count as input.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing

from vendors.local.engines.protocols import ChatOptions
from vendors.protocols import ChatItem, ChatMessage, Finish, TextDelta, Usage

_MAX_WORDS = 10_000
_MAX_QUOTE_CHARACTERS = 1_000
_WORD = re.compile(r"\s*\S+\s*")

Reply = Callable[[re.Match[str], list[str], list[str]], str]
"""Takes the match in the last message, the earlier user messages and the system messages. Returns the reply."""


class Scripted:
    fault = None

    def __init__(self, pace_ms: int = 20) -> None:
        self._pace_ms = pace_ms

    def reply(
        self, messages: Sequence[ChatMessage], options: ChatOptions
    ) -> AbstractAsyncContextManager[AsyncIterator[ChatItem]]:
        pace_ms = self._pace_ms if options.pace_ms is None else options.pace_ms
        words = _WORD.findall(answer(messages))
        emitted = words[: options.max_tokens]
        usage = Usage(sum(len(message.content.split()) for message in messages), len(emitted))
        finish = Finish("stop" if len(emitted) == len(words) else "length")
        return aclosing(_emit(emitted, pace_ms / 1000, finish, usage))

    def close(self) -> None:
        """Do nothing: there are no resources."""


async def _emit(words: list[str], pace_s: float, finish: Finish, usage: Usage) -> AsyncGenerator[ChatItem, None]:
    clock = asyncio.get_running_loop().time
    started_at = clock()
    for index, word in enumerate(words):
        if index:
            await asyncio.sleep(started_at + index * pace_s - clock())
        yield TextDelta(word)
    yield finish
    yield usage


def answer(messages: Sequence[ChatMessage]) -> str:
    """Return the model's reply to `messages`."""
    user_messages = [" ".join(message.content.split()) for message in messages if message.role == "user"]
    system_messages = [message.content.strip() for message in messages if message.role == "system"]
    last = user_messages.pop() if user_messages else ""
    for pattern, reply in _SCRIPT:
        if match := pattern.search(last):
            return reply(match, user_messages, system_messages)
    return f"You said: {last[:_MAX_QUOTE_CHARACTERS]}"


def _repeat(match: re.Match[str], user_messages: list[str], system_messages: list[str]) -> str:
    return " ".join(f"word{number}" for number in range(1, min(int(match[1]), _MAX_WORDS) + 1))


def _story(match: re.Match[str], user_messages: list[str], system_messages: list[str]) -> str:
    return _STORY.format(about=(match[1] or "a lighthouse").strip())


def _earlier(match: re.Match[str], user_messages: list[str], system_messages: list[str]) -> str:
    if not user_messages:
        return "You have not said anything before this."
    return "Earlier you said: " + " Then you said: ".join(quote[:_MAX_QUOTE_CHARACTERS] for quote in user_messages)


def _instructions(match: re.Match[str], user_messages: list[str], system_messages: list[str]) -> str:
    return "My instructions are: " + "\n".join(system_messages) if system_messages else "I have no instructions."


def _name(match: re.Match[str], user_messages: list[str], system_messages: list[str]) -> str:
    return "I am a scripted model: I follow a small script and understand nothing."


def _greeting(match: re.Match[str], user_messages: list[str], system_messages: list[str]) -> str:
    return "Hello! It is good to hear from you. What shall we talk about?"


_STORY = """\
This is a story about {about}. It begins in a small harbour, where the boats go out with the tide.

One morning a thick fog came in from the sea. Nobody could see the way home, and the boats lay still.

Then a bell rang from the end of the pier. It rang three times, and three times again. \
By noon every boat was back.

That evening the whole harbour sat together and listened to the water. \
And this is the end of the story about {about}."""

_SCRIPT: tuple[tuple[re.Pattern[str], Reply], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reply)
    for pattern, reply in (
        (r"\brepeat (\d{1,9}) words?\b", _repeat),
        (r"\bstory\b(?: (?:about|of) ([^.,;:!?]{1,100}))?", _story),
        (r"\bwhat did i (?:just )?say\b", _earlier),
        (r"\bwhat are your instructions\b", _instructions),
        (r"\bwho are you\b", _name),
        (r"^(?:hello|hi|hey|greetings|good (?:morning|afternoon|evening|day))\b(?:\W+\w+){0,3}\W*$", _greeting),
    )
)
