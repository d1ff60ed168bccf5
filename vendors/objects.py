"""Objects in the answers of vendors, read so that what nobody needs cannot make the rest unreadable.

A field that is `null` counts as missing everywhere. Two further rules are chosen for each object, because where money
moves, something unreadable must not look as if it did not exist:

- `PartialObject`: an optional field that cannot be read counts as missing too.
- `Readable` in a list: an object that cannot be read is left out of the list, logged and counted.
"""

from collections.abc import Callable
from typing import Annotated, Any, Self, TypeVar

import structlog
from pydantic import GetCoreSchemaHandler, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import CoreSchema, PydanticOmit, core_schema

from streams.metrics import CounterMetric
from streams.wire.model import Model, faults

log = structlog.get_logger()

UNREADABLE = CounterMetric(
    "parley_vendor_objects_unreadable",
    "Objects that were left out of vendors' lists because they could not be read",
    ["kind"],
)
_ID_CHARACTERS = 64


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
            optional = {
                field.alias or name for name, field in cls.model_fields.items() if not field.is_required()
            }
            unread = {detail["loc"][0] for detail in error.errors(include_url=False) if detail["loc"]} & optional
            if not unread or not isinstance(value, dict):
                raise
        return read({name: field for name, field in value.items() if name not in unread})


def report_unreadable(kind: str, value: Any, error: ValidationError) -> None:
    """Log and count an object that is left out of a list."""
    path, fault = next(faults(error))
    named = value.get("id") if isinstance(value, dict) else None
    log.warning(
        "vendor.object_unreadable",
        kind=kind,
        id=named[:_ID_CHARACTERS] if isinstance(named, str) else None,
        error=f"{path or 'object'} {fault}",
    )
    UNREADABLE.add(1, kind)


class _LeftOut:
    """Marks the entries of a list of which unreadable ones are left out."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kind: str = source.__name__

        def read(value: Any, validate: Callable[[Any], Any]) -> Any:
            try:
                return validate(value)
            except ValidationError as error:
                report_unreadable(kind, value, error)
                raise PydanticOmit from None

        return core_schema.no_info_wrap_validator_function(read, handler(source))


T = TypeVar("T", bound=Model)
Readable = Annotated[T, _LeftOut()]
"""`list[Readable[Thing]]` is a list of the things that can be read."""
