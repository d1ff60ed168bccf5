"""The configs that a config names in its fields. The fields declare this with `Ref`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

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


def may_name(model: type[Model], kind: str) -> bool:
    """Return whether fields of `model`, or of models in them, name configs of `kind`."""
    fields = model.model_fields.values()
    if any(isinstance(mark, Ref) and mark.kind == kind for field in fields for mark in field.metadata):
        return True
    return any(may_name(inner, kind) for field in fields for inner in _models_in(field.annotation))


def _models_in(annotation: Any) -> Iterator[type[Model]]:
    """Yield the models in the type of a field, such as those of the entries of a list."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


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
