"""A scripted model: no intelligence, always there, and the same answer to the same messages every time.

What the last message of the user asks for, in this order:

- `repeat N words`: `word1 word2 … wordN`, N at most 10,000;
- a *story*, `about` something or not: four paragraphs of two or three sentences, a blank line between;
- `what did I say`: the user's earlier messages;
- `what are your instructions`: the system messages;
- `who are you`: that it is a script;
- a greeting of at most four words: a greeting;
- anything else: `You said: ` and what was said.

It says a word every `pace_ms` (0: as fast as they are taken): that of the request's field `pace_ms`, else that
of a model name such as `scripted:0`, else the server's. Words are its tokens, those of all messages going in.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing

from vendors.local.protocols import ChatOptions
from vendors.protocols import ChatItem, ChatMessage, Finish, TextDelta, Usage

_MOST_WORDS = 10_000
_LONGEST_QUOTE = 1_000
_WORD = re.compile(r"\s*\S+\s*")

Line = Callable[[re.Match[str], list[str], list[str]], str]
"""Of the match in the last message, what the user said before it, and the system messages."""


class Scripted:
    fault = None

    def __init__(self, pace_ms: int = 20) -> None:
        self._pace_ms = pace_ms

    def reply(
        self, messages: Sequence[ChatMessage], options: ChatOptions
    ) -> AbstractAsyncContextManager[AsyncIterator[ChatItem]]:
        pace_ms = self._pace_ms if options.pace_ms is None else options.pace_ms
        words = _WORD.findall(answer(messages))
        said = words[: options.max_tokens]
        usage = Usage(sum(len(message.content.split()) for message in messages), len(said))
        finish = Finish("stop" if len(said) == len(words) else "length")
        return aclosing(_said(said, pace_ms / 1000, finish, usage))

    def close(self) -> None:
        """Nothing is held."""


async def _said(words: list[str], pace_s: float, finish: Finish, usage: Usage) -> AsyncGenerator[ChatItem, None]:
    clock = asyncio.get_running_loop().time
    begun = clock()
    for index, word in enumerate(words):
        if index:
            await asyncio.sleep(begun + index * pace_s - clock())
        yield TextDelta(word)
    yield finish
    yield usage


def answer(messages: Sequence[ChatMessage]) -> str:
    """What the model says to `messages`."""
    said = [" ".join(message.content.split()) for message in messages if message.role == "user"]
    told = [message.content.strip() for message in messages if message.role == "system"]
    last = said.pop() if said else ""
    for pattern, give in _SCRIPT:
        if match := pattern.search(last):
            return give(match, said, told)
    return f"You said: {last[:_LONGEST_QUOTE]}"


def _repeat(match: re.Match[str], said: list[str], told: list[str]) -> str:
    return " ".join(f"word{number}" for number in range(1, min(int(match[1]), _MOST_WORDS) + 1))


def _story(match: re.Match[str], said: list[str], told: list[str]) -> str:
    return _STORY.format(about=(match[1] or "a lighthouse").strip())


def _earlier(match: re.Match[str], said: list[str], told: list[str]) -> str:
    if not said:
        return "You have not said anything before this."
    return "Earlier you said: " + " Then you said: ".join(quote[:_LONGEST_QUOTE] for quote in said)


def _instructions(match: re.Match[str], said: list[str], told: list[str]) -> str:
    return "My instructions are: " + "\n".join(told) if told else "I have no instructions."


def _name(match: re.Match[str], said: list[str], told: list[str]) -> str:
    return "I am a scripted model: I follow a small script and understand nothing."


def _greeting(match: re.Match[str], said: list[str], told: list[str]) -> str:
    return "Hello! It is good to hear from you. What shall we talk about?"


_STORY = """\
This is a story about {about}. It begins in a small harbour, where the boats go out with the tide.

One morning a thick fog came in from the sea. Nobody could see the way home, and the boats lay still.

Then a bell rang from the end of the pier. It rang three times, and three times again. \
By noon every boat was back.

That evening the whole harbour sat together and listened to the water. \
And this is the end of the story about {about}."""

_SCRIPT: tuple[tuple[re.Pattern[str], Line], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), give)
    for pattern, give in (
        (r"\brepeat (\d{1,9}) words?\b", _repeat),
        (r"\bstory\b(?: (?:about|of) ([^.,;:!?]{1,100}))?", _story),
        (r"\bwhat did i (?:just )?say\b", _earlier),
        (r"\bwhat are your instructions\b", _instructions),
        (r"\bwho are you\b", _name),
        (r"^(?:hello|hi|hey|greetings|good (?:morning|afternoon|evening|day))\b(?:\W+\w+){0,3}\W*$", _greeting),
    )
)
