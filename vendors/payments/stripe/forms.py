"""Form-encoded bodies with nested fields in brackets, as Stripe reads them: `items[0][price]=price_1`."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

Value = str | int | Sequence["Value"] | Mapping[str, "Value"] | None
"""`None` leaves a field out. An empty string unsets it at Stripe. Times are Unix seconds."""


def form_encoded(fields: Mapping[str, Value]) -> str:
    return urlencode([pair for name, value in fields.items() for pair in _pairs(name, value)])


def _pairs(name: str, value: Value) -> Iterator[tuple[str, str]]:
    match value:
        case None:
            return
        case bool():
            yield name, "true" if value else "false"
        case str() | int():
            yield name, str(value)
        case Mapping():
            for key, item in value.items():
                yield from _pairs(f"{name}[{key}]", item)
        case _:
            for index, item in enumerate(value):
                yield from _pairs(f"{name}[{index}]" if isinstance(item, Mapping) else f"{name}[]", item)
