"""JSON Schema of what stands on the wire, from the types that put it there."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from streams.wire.model import Model

Schema = dict[str, Any]

_REF = "#/components/schemas/{model}"


class _WireSchema(GenerateJsonSchema):
    """Without titles that repeat a field's name, and without `null` where the server leaves a field out."""

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
    """The component schemas of a document, and the way to each by its type."""

    def __init__(self, *, sent: Iterable[type[Model]], told: Iterable[type[Model]]) -> None:
        """`sent` are the models that clients send, `told` those that the server answers with."""
        models: list[tuple[type[Model], Literal["validation", "serialization"]]] = [
            *((model, "validation") for model in dict.fromkeys(sent)),
            *((model, "serialization") for model in dict.fromkeys(told)),
        ]
        self._refs, found = models_json_schema(models, ref_template=_REF, schema_generator=_WireSchema)
        self.components: dict[str, Schema] = found.get("$defs", {})

    def sent(self, model: type[Model]) -> Schema:
        return self._refs[model, "validation"]

    def told(self, kind: Any) -> Schema:
        """Of a model, or of a plain type such as `str`."""
        if isinstance(kind, type) and issubclass(kind, Model):
            return self._refs[kind, "serialization"]
        return TypeAdapter(kind).json_schema()

    def resolved(self, schema: Schema) -> Schema:
        """The component, where `schema` only points at it."""
        return self.components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def query_schema(model: type[Model]) -> Schema:
    """The fields of a query. What is not given there is absent, never null."""
    return model.model_json_schema(schema_generator=_WireSchema, mode="serialization")
