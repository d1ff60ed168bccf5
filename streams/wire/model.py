"""The base class of all models of request bodies, replies, configs and vendor options."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationError,
    ValidatorFunctionWrapHandler,
)
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from streams.wire.codec import from_rfc3339, loads_request
from streams.wire.errors import InvalidParameter
from streams.wire.field_docs import field_docs

_DESCRIPTIONS = {
    "missing": "is required",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "none_required": "must be null",
    "extra_forbidden": "is not a field",
    "int_parsing": "must be an integer",
    "int_parsing_size": "is too large an integer",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "datetime_type": "must be a time such as 2030-01-31T12:00:00Z",
    "mapping_type": "must be an object",
    "string_unicode": "must be valid Unicode",
}
_BOUNDS = {
    "greater_than": ("gt", "must be greater than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}
_LENGTHS = {
    "string_too_short": ("min_length", "must be at least", "character"),
    "string_too_long": ("max_length", "must be at most", "character"),
    "too_short": ("min_length", "must have at least", "entry"),
    "too_long": ("max_length", "must have at most", "entry"),
}
_PLURAL = {"character": "characters", "entry": "entries"}


_TAGS = ("function-", "tagged-union", "is-instance", "literal[", "constrained-", "nullable")
_TYPES = frozenset({"int", "float", "str", "bool", "[key]"})
"""Names that Pydantic adds to the location of an error and that are not field names."""


def _whole_number(value: Any) -> Any:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
            raise ValueError("must be an integer")
        return int(value)
    return value


QueryInt = Annotated[int, Field(gt=-(10**18), lt=10**18), BeforeValidator(_whole_number)]
"""An integer in a query string. Fields may restrict it further."""


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        moment = from_rfc3339(value)
    except ValueError:
        moment = None
    if moment is None or not MINYEAR < moment.year < MAXYEAR:
        raise ValueError(_DESCRIPTIONS["datetime_type"])
    return moment


def _decimal(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(repr(value))
    if not isinstance(value, Decimal):
        raise ValueError("must be a number")  # noqa: TRY004 - pydantic reports it as an error of the field
    return value


DecimalNumber = Annotated[Decimal, BeforeValidator(_decimal), PlainSerializer(float)]
"""A JSON number as a decimal: 0.1 is a tenth, not the binary number closest to it.

All digits are read if the model has `exact_numbers`, otherwise 15 of them. It is written in the shortest form that
reads as the same float, so a field whose numbers have at most 15 digits is written exactly.
"""

Moment = Annotated[datetime, BeforeValidator(_moment)]
"""A time in the format of RFC 3339, with its offset from UTC."""


def not_blank(text: str) -> str:
    """Validate that `text` contains a character other than whitespace."""
    if not text.strip():
        raise ValueError("is required")
    return text


@dataclass(frozen=True, slots=True)
class Matches:
    """Marks a string that must match `pattern`. Otherwise `requirement` is the description of the fault.

    `Annotated[str, Matches(r"^[A-Z]{3}$", "must be three capital letters")]`. The pattern is also part of the JSON
    schema.
    """

    pattern: str
    requirement: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def match(value: str, matched: ValidatorFunctionWrapHandler) -> Any:
            try:
                return matched(value)
            except ValidationError as error:
                if error.errors(include_url=False)[0]["type"] == "string_pattern_mismatch":
                    raise ValueError(self.requirement) from None
                raise

        matching = core_schema.no_info_wrap_validator_function(match, core_schema.str_schema(pattern=self.pattern))
        return core_schema.chain_schema([handler(source), matching])

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": self.pattern}


HttpUrl = Annotated[
    str,
    Matches(
        r"^https?://[^\s/?#]+([/?#]\S*)?$", "must be a URL that begins with http:// or https://, without spaces"
    ),
]


class Model(BaseModel):
    """A frozen model with strict types. Unknown fields are ignored, so newer clients work with older servers."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )

    exact_numbers: ClassVar[bool] = False
    """Whether numbers of a client's JSON are read as `Decimal`. The fields must then not be floats."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Add the descriptions of the fields.

        Pydantic's `use_attribute_docstrings` reads the source of every model at import: a sixth of a start.
        """
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        docs = field_docs(cls, Model)
        for name, field in cls.model_fields.items():
            for key in {name, field.alias, field.serialization_alias} & properties.keys():
                if name in docs:
                    properties[key].setdefault("description", docs[name])
        return schema

    @classmethod
    def of(cls, value: Any, *, short_paths: bool = False) -> Self:
        """Validate a decoded JSON value. Raises `InvalidParameter` that names the first invalid field.

        With `short_paths`, the field is named by the last element of its path only.
        """
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            path, description = next(faults(error))
            if short_paths:
                path = path.rpartition(".")[2]
            raise InvalidParameter(f"{path or 'body'} {description}") from None

    @classmethod
    def read(cls, raw: bytes, *, short_paths: bool = False) -> Self:
        """Parse and validate a client's JSON body. An empty body counts as an empty object."""
        value = loads_request(raw, exact=cls.exact_numbers) if raw.strip() else {}
        return cls.of(value, short_paths=short_paths)


def faults(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield the path and the description of each error, such as `("data.reference_text", "is required")`."""
    for detail in error.errors(include_url=False, include_input=False):
        yield _path(detail), _description(detail)


def _path(detail: ErrorDetails) -> str:
    path = ""
    for part in detail["loc"]:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not part.startswith(_TAGS) and part not in _TYPES:
            path += f".{part}" if path else part
    return path


def _description(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _DESCRIPTIONS:
        return _DESCRIPTIONS[kind]
    if kind in {"literal_error", "enum"}:
        return f"must be one of {context['expected']}"
    if kind in {"string_too_short", "too_short"} and context.get("min_length") == 1:
        return "must not be empty"
    if kind in _BOUNDS or kind in _LENGTHS:
        # After a validator, Pydantic takes a text for any value. Lists are still lists.
        return _limit(f"string_{kind}" if context.get("field_type") == "Value" else kind, context)
    message = detail["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _limit(kind: str, context: Mapping[str, Any]) -> str:
    if kind in _BOUNDS:
        name, phrase = _BOUNDS[kind]
        return f"{phrase} {_number(context[name])}"
    name, phrase, unit = _LENGTHS[kind]
    length = context[name]
    return f"{phrase} {length} {unit if length == 1 else _PLURAL[unit]}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
