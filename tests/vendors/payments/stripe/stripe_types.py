"""Stripe's API as the types of its official package describe it: calls, their parameters, and objects."""

import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, ForwardRef, Literal, NotRequired, Required, Union, get_args, get_origin

import stripe
import stripe.params
from stripe._error_object import ErrorObject
from stripe._expandable_field import ExpandableField
from stripe._list_object import ListObject
from stripe._stripe_object import StripeObject, UntypedStripeObject
from typing_extensions import is_typeddict

_CALL = re.compile(r'"(get|post|delete)",\s*"(/v1/[^"]+)"')
_NAMES: dict[str, Any] = {
    **vars(typing),
    **vars(stripe),
    **vars(stripe.params),
    **{kind.__name__: kind for kind in (Decimal, ErrorObject, ListObject, UntypedStripeObject)},
    "ExpandableField": ExpandableField,
}


@dataclass(frozen=True, slots=True)
class Published:
    """A call: the type of its parameters, and that of its response."""

    params: Any
    response: Any


@cache
def calls() -> Mapping[str, Published]:
    """Return all calls of the package's services by method and path, such as `POST /v1/customers/{id}`."""
    found = {}
    for module in pkgutil.iter_modules(stripe.__path__):
        if not module.name.endswith("_service"):
            continue
        for _, service in inspect.getmembers(importlib.import_module(f"stripe.{module.name}"), inspect.isclass):
            for _, method in inspect.getmembers(service, inspect.isfunction):
                if call := _CALL.search(inspect.getsource(method)):
                    path = re.sub(r"\{\w+\}", "{id}", call[2])
                    hints = method.__annotations__
                    found[f"{call[1].upper()} {path}"] = Published(hints["params"], hints["return"])
    return found


def class_of(name: str) -> Any:
    """Return the class of objects whose field `object` is `name`, such as `payment_intent`."""
    names = {"event": "Event", "line_item": "InvoiceLineItem"}
    return getattr(stripe, names.get(name, "".join(part.capitalize() for part in name.split("_"))))


def unlike(value: Any, hint: Any, path: str = "", *, is_form: bool = False) -> list[str]:
    """Return how `value` differs from a type.

    `is_form`: it was sent as a form, in which all values are texts. A `str` beside literals stands for values of
    later versions, and is not accepted.
    """
    kinds = [*alternatives(hint)]
    enums = [kind for kind in kinds if get_origin(kind) is Literal]
    if any(get_args(kind) != ("",) for kind in enums):
        kinds = [kind for kind in kinds if kind is not str]
    problems = [[*_differences(value, kind, path, is_form=is_form)] for kind in kinds]
    return min(problems, key=lambda found: (len(found), [-problem.count("/") for problem in found]))


def fields_of(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of an object."""
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base not in {StripeObject, object, dict}:
            hints |= vars(base).get("__annotations__", {})
    return {name: hint for name, hint in hints.items() if not name.startswith("_") and name.islower()}


def alternatives(hint: Any) -> Iterator[Any]:
    """Yield the members of a union, or the only type."""
    hint = resolved(hint)
    if get_origin(hint) in {NotRequired, Required}:
        yield from alternatives(get_args(hint)[0])
    elif get_origin(hint) in {Union, type(int | str)}:
        for member in get_args(hint):
            yield from alternatives(member)
    else:
        yield hint


def resolved(hint: Any) -> Any:
    """Return a type, which the package may give as the text of an annotation."""
    while isinstance(hint, str | ForwardRef):
        text = hint if isinstance(hint, str) else hint.__forward_arg__
        hint = eval(text, _names_of(text))  # noqa: S307 - the package's own annotations
    return hint


def _names_of(text: str) -> dict[str, Any]:
    """Return the names that an annotation may use. Those of parameters are not imported before."""
    named = {name: _found(name) for name in re.findall(r"[A-Z]\w+", text) if name not in _NAMES}
    return _NAMES | named


def _found(name: str) -> Any:
    return _nested()[name] if name in _nested() else getattr(stripe, name)


@cache
def _nested() -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for module in pkgutil.iter_modules(stripe.params.__path__):
        found |= vars(importlib.import_module(f"stripe.params.{module.name}"))
    return found


def _differences(value: Any, kind: Any, path: str, *, is_form: bool) -> Iterator[str]:
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin is Literal:
        if value not in arguments:
            yield f"{path} is {value!r}"
    elif origin is ListObject:
        yield from _list_differences(value, arguments[0], path)
    elif origin is list and isinstance(value, list):
        for index, item in enumerate(value):
            yield from unlike(item, arguments[0], f"{path}/{index}", is_form=is_form)
    elif origin in {dict, UntypedStripeObject} and isinstance(value, dict):
        for name, field in value.items():
            yield from unlike(field, arguments[-1], f"{path}/{name}", is_form=is_form)
    elif has_fields(origin) and isinstance(value, dict):
        yield from _object_differences(value, origin, path, is_form=is_form)
    elif not _is_a(value, origin, is_form=is_form):
        yield f"{path} is {value!r}"


def _list_differences(value: Any, item: Any, path: str) -> Iterator[str]:
    """Compare a page of a list."""
    if not isinstance(value, dict) or not isinstance(value.get("data"), list):
        yield f"{path} is no list"
        return
    yield from (f"{path}/{name} is unknown" for name in value if name not in {*fields_of(ListObject), "object"})
    for index, item_value in enumerate(value["data"]):
        yield from unlike(item_value, item, f"{path}/data/{index}")


def has_fields(kind: Any) -> bool:
    """Return whether a type is an object with named fields."""
    if is_typeddict(kind):
        return True
    return inspect.isclass(kind) and issubclass(kind, StripeObject) and kind is not UntypedStripeObject


def _object_differences(value: dict[str, Any], kind: Any, path: str, *, is_form: bool) -> Iterator[str]:
    fields = kind.__annotations__ if is_typeddict(kind) else fields_of(kind)
    for name in getattr(kind, "__required_keys__", ()):
        if name not in value and get_origin(resolved(fields[name])) is not NotRequired:
            yield f"{path}/{name} is missing"
    for name, field in value.items():
        if name in fields:
            yield from unlike(field, fields[name], f"{path}/{name}", is_form=is_form)
        else:
            yield f"{path}/{name} is unknown"


def _is_a(value: Any, kind: Any, *, is_form: bool) -> bool:
    if kind is Any:
        return True
    if kind is type(None):
        return value is None
    if has_fields(kind):
        return False
    if is_form and isinstance(value, str):
        if kind is bool:
            return value in {"true", "false"}
        return kind is str or (kind in {int, float, Decimal} and value.removeprefix("-").isdecimal())
    return isinstance(value, kind) and isinstance(value, bool) is (kind is bool)
