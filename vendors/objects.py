"""Objects in the answers of vendors, read so that what nobody needs cannot make the rest unreadable.

A field that is `null` counts as missing everywhere. The other rules are chosen for each object, because where money
moves, something unreadable must not look as if it did not exist:

- `PartialObject`: an optional field that cannot be read counts as missing too.
- `Readable` in a list: an object that cannot be read is left out of the list, logged and counted.
- `read_each`: the same, for a caller that also reports what was left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeVar

import structlog
from pydantic import GetCoreSchemaHandler, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import CoreSchema, PydanticOmit, core_schema

from streams.metrics import CounterMetric
from streams.wire.codec import dumps
from streams.wire.ids import sha256_hex
from streams.wire.model import Model, faults

log = structlog.get_logger()

UNREADABLE = CounterMetric(
    "parley_vendor_objects_unreadable",
    "Objects that were left out of vendors' lists because they could not be read",
    ["kind"],
)
_ID_CHARACTERS = 255


class VendorObject(Model):
    """An object of a vendor. A field that is `null` counts as missing."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: field for name, field in value.items() if field is not None}
        return value


class PartialObject(VendorObject):
    """An object of which the required fields are needed. An optional one that cannot be read counts as missing."""

    @model_validator(mode="wrap")
    @classmethod
    def _without_unreadable(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return read(value)
        except ValidationError as error:
            optional = {field.alias or name for name, field in cls.model_fields.items() if not field.is_required()}
            unread = {detail["loc"][0] for detail in error.errors(include_url=False) if detail["loc"]} & optional
            if not unread or not isinstance(value, dict):
                raise
        return read({name: field for name, field in value.items() if name not in unread})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object of a list that cannot be read."""

    id: str
    """Its id or, if that cannot be read either, a digest of the object."""
    fault: str


M = TypeVar("M", bound=Model)


def read_each(model: type[M], values: Sequence[Any]) -> tuple[list[M], list[Unreadable]]:
    """Return the objects of a list that can be read, and the others, which are logged and counted."""
    read: list[M] = []
    unreadable: list[Unreadable] = []
    for value in values:
        try:
            read.append(model.model_validate(value))
        except ValidationError as error:
            unreadable.append(_left_out(model.__name__, value, error))
    return read, unreadable


def _left_out(kind: str, value: Any, error: ValidationError) -> Unreadable:
    path, fault = next(faults(error))
    named = value.get("id") if isinstance(value, dict) else None
    if not isinstance(named, str) or not named:
        named = f"sha256:{sha256_hex(dumps(value))}"
    left_out = Unreadable(named.replace("\0", " ")[:_ID_CHARACTERS], f"{path or 'object'} {fault}")
    log.warning("vendor.object_unreadable", kind=kind, id=left_out.id, error=left_out.fault)
    UNREADABLE.add(1, kind)
    return left_out


class _LeftOut:
    """Marks the entries of a list of which unreadable ones are left out."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kind: str = source.__name__

        def read(value: Any, validate: Callable[[Any], Any]) -> Any:
            try:
                return validate(value)
            except ValidationError as error:
                _left_out(kind, value, error)
                raise PydanticOmit from None

        return core_schema.no_info_wrap_validator_function(read, handler(source))


Readable = Annotated[M, _LeftOut()]
"""`list[Readable[Thing]]` is a list of the things that can be read."""
