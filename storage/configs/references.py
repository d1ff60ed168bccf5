"""The configs that a config names in its fields. The fields declare this with `Ref`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo

from storage.configs.kinds.base import Ref
from streams.wire.model import Model


@dataclass(frozen=True, slots=True)
class Reference:
    """The field at `path` names the config `name` of `kind`. `offers` comes from its `Ref`."""

    path: str
    kind: str
    name: str
    offers: str | None = None


def references(value: Any, path: str = "") -> Iterator[Reference]:
    """Yield the references in a config's value, in the order of its fields. Empty names are not references."""
    match value:
        case Model():
            for name, field in type(value).model_fields.items():
                inner = f"{path}.{field.alias or name}" if path else field.alias or name
                yield from _of_field(field, getattr(value, name), inner)
        case dict():
            for key, item in value.items():
                yield from references(item, f"{path}.{key}")
        case list() | tuple():
            for index, item in enumerate(value):
                yield from references(item, f"{path}[{index}]")


def _of_field(field: FieldInfo, value: Any, path: str) -> Iterator[Reference]:
    ref = next((entry for entry in field.metadata if isinstance(entry, Ref)), None)
    if ref is None:
        yield from references(value, path)
    elif isinstance(value, str):
        if value:
            yield Reference(path, ref.kind, value, ref.offers)
    elif value is not None:
        yield from (
            Reference(f"{path}[{index}]", ref.kind, name, ref.offers) for index, name in enumerate(value) if name
        )
