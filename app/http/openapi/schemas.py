"""JSON Schema of request and response bodies, generated from their models."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from app.http.rows.inputs import Input
from streams.wire.model import Model

Schema = dict[str, Any]

_REF = "#/components/schemas/{model}"


class _WireSchema(GenerateJsonSchema):
    """Omits titles that repeat a field's name, and `null` for fields that the server leaves out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default", ...) is not None:
            return super().default_schema(schema)
        inner = schema["schema"]
        if self.mode == "serialization" and inner["type"] == "nullable":
            inner = inner["schema"]
        return self.generate_inner(inner)


class Schemas:
    """The component schemas of a document, and a reference to each by its model."""

    def __init__(self, *, requests: Iterable[type[Model]], responses: Iterable[type[Model]]) -> None:
        """`requests` are the models that clients send, `responses` those that the server sends."""
        models: list[tuple[type[Model], Literal["validation", "serialization"]]] = [
            *((model, "validation") for model in dict.fromkeys(requests)),
            *((model, "serialization") for model in dict.fromkeys(responses)),
        ]
        self._refs, schema = models_json_schema(models, ref_template=_REF, schema_generator=_WireSchema)
        self.components: dict[str, Schema] = schema.get("$defs", {})

    def request(self, model: type[Model]) -> Schema:
        return self._refs[model, "validation"]

    def response(self, kind: Any) -> Schema:
        """Return the schema of a model, or of a plain type such as `str`."""
        if isinstance(kind, type) and issubclass(kind, Model):
            return self._refs[kind, "serialization"]
        return TypeAdapter(kind).json_schema()

    def resolved(self, schema: Schema) -> Schema:
        """Return the component that `schema` refers to, or `schema` itself if it is not a reference."""
        return self.components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def parameter_schemas(given: Input | None) -> Iterator[tuple[str, Schema, bool]]:
    """Yield each parameter of a query or path: its name, its schema without `null`, and whether it is required."""
    if given is None:
        return
    schema = given.model.model_json_schema(schema_generator=_WireSchema, mode="serialization")
    for name, field in schema["properties"].items():
        yield name, field, name in schema.get("required", ())
