"""The inputs and the reply of a handler, as its signature declares them.

A signature is read once, when its row of the route table is created.
"""

import inspect
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from aiohttp import web

from app.http.rows.replies import Json
from app.http.rows.transactions import Transaction
from streams.body import ChunkReader
from streams.wire.model import Model

T = TypeVar("T", bound=Model)


class Source(Enum):
    """The part of a request that a parameter of a handler holds."""

    BODY = "Body"
    CHUNKED = "Chunked"
    RAW_BODY = "RawBody"
    QUERY = "Query"
    PATH = "Path"
    TRANSACTION = "Transaction"


Body = Annotated[T, Source.BODY]
"""The JSON body. An empty body counts as an empty object."""
Query = Annotated[T, Source.QUERY]
"""The query. A parameter that occurs more than once has its first value."""
Path = Annotated[T, Source.PATH]
"""The parameters of the path, except `user_id` of an S2S path and `app_id` of a webhook: the call has these."""
RawBody = Annotated[bytes, Source.RAW_BODY]
"""The body as it was sent."""


@dataclass(frozen=True, slots=True)
class Chunked(Generic[T]):
    """A body whose first JSON object is followed by other input, which the handler reads while it arrives."""

    parameters: T
    rest: ChunkReader


_BODIES = frozenset({Source.BODY, Source.CHUNKED, Source.RAW_BODY})
_MARKERS = "Body[...], Chunked[...], RawBody, Query[...], Path[...] or Transaction"


class InvalidRow(ValueError):
    """A row of the route table contradicts its handler or itself."""


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter of a handler. `model` is `bytes` for a raw body, and `Transaction` for a transaction."""

    name: str
    source: Source
    model: type[Any]

    @property
    def fields(self) -> list[str]:
        """The names of its fields as they are sent."""
        return [field.alias or name for name, field in self.model.model_fields.items()]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The parameters of a handler after its `Call`, and the model of its reply, if it has one."""

    body: Input | None
    query: Input | None
    path: Input | None
    transaction: Input | None
    """Set if the endpoint accepts an `Idempotency-Key`."""
    reply: type[Model] | None

    def model(self, source: Source) -> type[Model] | None:
        for part in (self.body, self.query, self.path):
            if part is not None and part.source is source:
                return part.model
        return None


def inputs_of(handler: Callable[..., Any], *, call: type) -> Inputs:
    """Return the inputs of a handler whose first parameter is a `call`. Raises `InvalidRow`."""
    if not inspect.iscoroutinefunction(handler):
        raise InvalidRow("the handler must be an async function")
    hints = _hints(handler)
    parameters = [*inspect.signature(handler).parameters.values()]
    if not parameters or hints.get(parameters[0].name) is not call:
        raise InvalidRow(f"the first parameter of the handler must be a {call.__name__}")
    found = [_input(parameter, hints) for parameter in parameters[1:]]
    return Inputs(
        body=_only(found, _BODIES),
        query=_only(found, {Source.QUERY}),
        path=_only(found, {Source.PATH}),
        transaction=_only(found, {Source.TRANSACTION}),
        reply=_reply(hints),
    )


def _hints(handler: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(handler, include_extras=True)
    except NameError as error:
        raise InvalidRow(f"an annotation of the handler cannot be resolved: {error}") from None


def _input(parameter: inspect.Parameter, hints: dict[str, Any]) -> Input:
    hint = hints.get(parameter.name)
    if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
        raise InvalidRow(f"parameter {parameter.name} cannot be passed by its name")
    if parameter.default is not parameter.empty:
        raise InvalidRow(f"parameter {parameter.name} must not have a default")
    if hint is Transaction:
        return Input(parameter.name, Source.TRANSACTION, Transaction)
    if get_origin(hint) is Chunked or hint is Chunked:
        sources, types = [Source.CHUNKED], get_args(hint)
    else:
        sources = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Source)]
        types = get_args(hint)
    if len(sources) != 1:
        raise InvalidRow(f"parameter {parameter.name} must be one of {_MARKERS}")
    [source] = sources
    model = types[0] if types else None
    if model is None or (source is not Source.RAW_BODY and not _is_model(model)):
        raise InvalidRow(f"parameter {parameter.name} must name a model: {source.value}[...]")
    return Input(parameter.name, source, model)


def _only(found: list[Input], sources: frozenset[Source] | set[Source]) -> Input | None:
    matching = [part for part in found if part.source in sources]
    if len(matching) > 1:
        names = " and ".join(part.name for part in matching)
        raise InvalidRow(f"parameters {names} hold the same part of the request")
    return matching[0] if matching else None


def _reply(hints: dict[str, Any]) -> type[Model] | None:
    if "return" not in hints:
        raise InvalidRow("the handler must say what it returns")
    models = list(_models(hints["return"]))
    if len(models) > 1:
        raise InvalidRow("the handler returns more than one model")
    return models[0] if models else None


def _models(hint: Any) -> Iterator[type[Model]]:
    """Yield the models in the return type of a handler."""
    if get_origin(hint) in {Union, UnionType}:
        for option in get_args(hint):
            yield from _models(option)
    elif get_origin(hint) is Json and _is_model(get_args(hint)[0]):
        yield get_args(hint)[0]
    elif _is_model(hint):
        yield hint
    elif hint is not NoneType and get_origin(hint) is not Coroutine and not _is_response(hint):
        raise InvalidRow(f"the handler cannot return {getattr(hint, '__name__', hint)}")


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Model)


def _is_response(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, web.StreamResponse)
