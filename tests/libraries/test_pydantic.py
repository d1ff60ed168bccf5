"""The undocumented parts of Pydantic that `streams/wire/model.py` and `app/http/openapi/schemas.py` depend on."""

from typing import Annotated, Literal

import pytest
from pydantic import BeforeValidator, Field
from pydantic.json_schema import GenerateJsonSchema

from streams.wire.errors import InvalidParameter
from streams.wire.model import Model
from tests.libraries.installed import other_parameters, version_fault

OVERRIDDEN = {
    "field_title_should_be_set": ("schema",),
    "default_schema": ("schema",),
    "generate_inner": ("schema",),
}


class Text(Model):
    kind: Literal["text"]
    size: int


class Sound(Model):
    kind: Literal["sound"]
    length: int


class Nested(Model):
    tagged: Annotated[Text | Sound, Field(discriminator="kind")] | None = None
    either: int | str | None = None
    checked: Annotated[int, BeforeValidator(lambda value: value)] | None = None


def test_the_version_is_in_the_range_that_was_tested() -> None:
    assert version_fault("pydantic") is None


def test_overridden_and_called_methods_have_the_expected_parameters() -> None:
    assert other_parameters(GenerateJsonSchema, OVERRIDDEN) == []


@pytest.mark.parametrize("field", ["either", "checked"])
def test_the_location_of_an_error_has_no_unknown_names(field: str) -> None:
    with pytest.raises(InvalidParameter) as raised:
        Nested.of({field: []})

    path = raised.value.what.partition(" ")[0]
    assert path == field, (
        "Pydantic adds other names to the location of an error: see `_path` in streams/wire/model.py"
    )
