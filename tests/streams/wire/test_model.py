"""Invalid values are reported with their path. Types are strict, and unknown fields are ignored."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from streams.wire.errors import InvalidParameter
from streams.wire.model import HttpUrl, Matches, Model, QueryInt, faults


class Named(Model):
    name: str
    """What it is called."""
    size_: int = Field(default=0, serialization_alias="size")
    """In bytes."""


class Placed(Model):
    path: str = Field(default="/", description="Given by hand.")
    """Not read, because the field has a description."""
    tags: list[str] = Field(default_factory=list)


class NamedAndPlaced(Named, Placed):
    name: str = "new"
    """A better name."""


class Inner(Model):
    reference_text: str = Field(min_length=1)
    offset: int = 0


class Outer(Model):
    name: str
    kind: Literal["text", "audio"] = "text"
    count: Annotated[int, Field(ge=0)] = 0
    ratio: float = 0.0
    wanted: bool = False
    tags: list[str] = Field(default_factory=list, max_length=2)
    data: Inner | None = None
    items: list[Inner] = Field(default_factory=list)
    params: dict[str, int] = Field(default_factory=dict)
    code: str | None = Field(default=None, min_length=2, max_length=3)
    letter: str | None = Field(default=None, max_length=1)
    currency: Annotated[str, Matches(r"^[A-Z]{3}$", "must be three capital letters")] = "USD"
    address: HttpUrl = "https://parley.example/v1"
    share: float = Field(default=1, gt=0, le=1)
    speed: float = Field(default=1, ge=0.25, lt=4.0)
    parts: dict[str, Any] = Field(default_factory=dict, max_length=1)
    pair: list[int] | None = Field(default=None, min_length=2)
    limit: Annotated[int, Field(strict=False, ge=1)] = 1
    exact: Annotated[float, Field(strict=False)] = 1
    sure: Annotated[bool, Field(strict=False)] = True


NO_URLS = ["x", "ftp://x", "http://", "http:///v1", "https://?a=b", "http://a b", "http://x/a b", "http://x/\n"]
URL = "must be a URL that begins with http:// or https://, without spaces"


class Query(Model):
    size: QueryInt = Field(default=10, ge=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "name is required"),
        ({"name": None}, "name must be a string"),
        ({"name": 1}, "name must be a string"),
        ({"name": "a", "count": "1"}, "count must be an integer"),
        ({"name": "a", "count": 1.5}, "count must be an integer"),
        ({"name": "a", "count": True}, "count must be an integer"),
        ({"name": "a", "count": -1}, "count must be at least 0"),
        ({"name": "a", "ratio": "1"}, "ratio must be a number"),
        ({"name": "a", "wanted": 1}, "wanted must be true or false"),
        ({"name": "a", "wanted": "true"}, "wanted must be true or false"),
        ({"name": "a", "tags": "x"}, "tags must be a list"),
        ({"name": "a", "tags": ["x", 2]}, "tags[1] must be a string"),
        ({"name": "a", "kind": "video"}, "kind must be one of 'text' or 'audio'"),
        ({"name": "a", "data": []}, "data must be an object"),
        ({"name": "a", "data": {}}, "data.reference_text is required"),
        ({"name": "a", "data": {"reference_text": ""}}, "data.reference_text must not be empty"),
        ({"name": "a", "items": [{"reference_text": "b"}, {}]}, "items[1].reference_text is required"),
        ({"name": "a", "params": {"x": "1"}}, "params.x must be an integer"),
        ({"name": "a", "params": 1}, "params must be an object"),
        ({"name": "a", "code": "a"}, "code must be at least 2 characters"),
        ({"name": "a", "code": "abcd"}, "code must be at most 3 characters"),
        ({"name": "a", "letter": "ab"}, "letter must be at most 1 character"),
        ({"name": "a", "currency": "euro"}, "currency must be three capital letters"),
        *(({"name": "a", "address": url}, f"address {URL}") for url in NO_URLS),
        ({"name": "a", "share": 0}, "share must be greater than 0"),
        ({"name": "a", "share": 1.5}, "share must be at most 1"),
        ({"name": "a", "speed": 0.1}, "speed must be at least 0.25"),
        ({"name": "a", "speed": 4.0}, "speed must be less than 4"),
        ({"name": "a", "tags": ["x", "y", "z"]}, "tags must have at most 2 entries"),
        ({"name": "a", "parts": {"x": 1, "y": 2}}, "parts must have at most 1 entry"),
        ({"name": "a", "pair": [1]}, "pair must have at least 2 entries"),
        ({"name": "a", "limit": "x"}, "limit must be an integer"),
        ({"name": "a", "limit": "9" * 5000}, "limit is too large an integer"),
        ({"name": "a", "limit": "0"}, "limit must be at least 1"),
        ({"name": "a", "exact": "x"}, "exact must be a number"),
        ({"name": "a", "sure": "perhaps"}, "sure must be true or false"),
        ({"name": "a", "currency": "\ud800"}, "currency must be valid Unicode"),
        ([], "body must be an object"),
        ("name", "body must be an object"),
        (None, "body must be an object"),
    ],
)
def test_first_fault_is_named_by_its_path(value: Any, message: str):
    with pytest.raises(InvalidParameter) as refused:
        Outer.of(value)

    assert str(refused.value) == f"invalid_parameter: {message}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": "a", "data": {}}, "reference_text is required"),
        ({"name": "a", "items": [{"reference_text": "b", "offset": "1"}]}, "offset must be an integer"),
        ({}, "name is required"),
        ([], "body must be an object"),
    ],
)
def test_a_short_path_contains_only_the_last_element(value: Any, message: str):
    with pytest.raises(InvalidParameter) as refused:
        Outer.of(value, short_paths=True)

    assert refused.value.what == message


@pytest.mark.parametrize("url", ["http://x", "https://a:b@x:80/v1?c=d#e", "http://[::1]:80", "http://x?a"])
def test_urls_are_accepted(url: str):
    assert Outer.of({"name": "a", "address": url}).address == url


def test_numbers_that_a_float_cannot_represent_are_refused():
    with pytest.raises(InvalidParameter, match="ratio must be a finite number"):
        Outer.of({"name": "a", "ratio": float("inf")})


def test_unknown_fields_are_ignored():
    assert Outer.of({"name": "a", "since_version_9": {"x": []}}) == Outer(name="a")


def test_integers_are_accepted_as_numbers():
    assert Outer.of({"name": "a", "ratio": 2}).ratio == 2.0


def test_models_are_frozen():
    with pytest.raises(ValidationError):
        Outer(name="a").name = "b"


def test_all_faults_are_listed_on_request():
    with pytest.raises(ValidationError) as refused:
        Outer.model_validate({"tags": [1], "data": {"offset": ""}})

    assert list(faults(refused.value)) == [
        ("name", "is required"),
        ("tags[0]", "must be a string"),
        ("data.reference_text", "is required"),
        ("data.offset", "must be an integer"),
    ]


@pytest.mark.parametrize("raw", [b"", b" \r\n\t", b"{}"])
def test_empty_body_is_an_empty_object(raw: bytes):
    assert Query.read(raw) == Query(size=10)


def test_buffered_body_is_read_before_its_error():
    assert Outer.read('{"name": "ñ"}'.encode()).name == "ñ"
    with pytest.raises(InvalidParameter, match=r"^invalid_parameter: reference_text is required$"):
        Outer.read(b'{"name": "a", "data": {}}', short_paths=True)
    with pytest.raises(InvalidParameter, match=r"^invalid_parameter: body is not valid JSON: "):
        Outer.read(b'{"name": "a"')


@pytest.mark.parametrize(("given", "size"), [("1", 1), ("007", 7), (5, 5), ("9" * 18, 10**18 - 1)])
def test_integer_of_a_query_is_read(given: Any, size: int):
    assert Query.of({"size": given}).size == size


@pytest.mark.parametrize(
    "given", ["", "-", "--1", "1.0", "1e3", "+1", " 1", "1_000", "٣", "9" * 19, "x", 1.0, True]
)
def test_integers_in_queries_are_validated(given: Any):
    with pytest.raises(InvalidParameter, match=r"^invalid_parameter: size must be an integer$"):
        Query.of({"size": given})


def test_integer_of_a_query_keeps_its_bounds():
    with pytest.raises(InvalidParameter, match="size must be at least 1"):
        Query.of({"size": "-3"})


def test_schema_describes_fields_by_the_strings_below_them():
    schema = NamedAndPlaced.model_json_schema(mode="serialization")
    described = {name: field.get("description") for name, field in schema["properties"].items()}
    assert described == {"name": "A better name.", "size": "In bytes.", "path": "Given by hand.", "tags": None}
    assert Named.model_json_schema()["properties"]["name"]["description"] == "What it is called."
