"""The client calls all operations of the interface that are for apps and app servers."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from parley_client import ParleyClient, ParleyError, ServerClient, ServerKey
from tests.clients.operations import expected, recording_server
from tests.clients.python.conftest import PROMPT

KEY = ServerKey("one", "HS256", "a secret that signs nothing that matters")
STREAMED = {"language_code": "en-US", "strategies": ["one"]}
EXAMPLES = {
    str: "one",
    int: 1,
    float: 1.0,
    bytes: bytes(4),
    Mapping: {},
    datetime: datetime(2026, 1, 1, tzinfo=UTC),
}
VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


async def test_the_client_calls_all_operations() -> None:
    async with (
        recording_server() as recorder,
        ParleyClient(recorder.url, session="a session", backoff=PROMPT) as client,
        ServerClient(recorder.url, "default", KEY, backoff=PROMPT) as backend,
    ):
        for target in (client, backend, backend.user("a user")):
            await call_everything(target)
        called, wanted = recorder.operations(), expected()
    assert sorted(called - wanted) == []
    assert sorted(wanted - called) == []


async def call_everything(target: Any) -> None:
    for method in methods(target):
        positional, named = arguments(method)
        with suppress(ParleyError):
            await method(*positional, **named)
    if not isinstance(target, ServerClient):
        for stream in (
            target.converse(text="Hello", **STREAMED),
            target.speak("Hello", strategies=["one"]),
        ):
            with suppress(ParleyError):
                await stream.finish()
            await stream.interrupt()


def methods(target: Any) -> Iterator[Any]:
    """Yield the public methods of a client and its parts that send a request."""
    for name, value in inspect.getmembers(target):
        if name.startswith("_") or name == "close":
            continue
        if inspect.iscoroutinefunction(value):
            yield value
        elif type(value).__module__.startswith("parley_client.areas"):
            yield from methods(value)


def arguments(method: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return examples of the arguments that a method requires: by position, and by name."""
    hints = get_type_hints(method)
    found = [one for one in inspect.signature(method).parameters.values() if one.default is one.empty]
    given = {one.name: example(hints[one.name]) for one in found if one.kind not in VARIADIC}
    positional = [given.pop(one.name) for one in found if one.kind is one.POSITIONAL_ONLY]
    return positional, given


def example(hint: Any) -> Any:
    """Return a value of a type."""
    kind = get_origin(hint) or hint
    if kind is Literal:
        return get_args(hint)[0]
    if kind in {Union, UnionType}:
        return example(get_args(hint)[0])
    if kind is Sequence:
        return ["one"]
    return EXAMPLES[kind]
