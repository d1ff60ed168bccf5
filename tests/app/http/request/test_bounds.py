"""Every number and list that a client or an operator may set has bounds."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.routes import ROUTES
from storage.configs.kinds import KINDS
from streams.wire.model import Model
from tests.running.servers import ADMIN_TOKEN, Server
from vendors.catalog import CAPABILITIES

SENT = {
    f"{row.method} {row.path} {given.source.value}": given.model
    for row in ROUTES
    for given in (row.inputs.body, row.inputs.query)
    if given is not None and issubclass(given.model, Model)
}
OPTIONS = {
    f"{platform} {capability.name}": vendor.options
    for capability in CAPABILITIES
    for platform, vendor in capability.vendors.items()
}

WITHOUT_BOUNDS = {
    "social_network_a.expiration_date": "it is not used, and clients send what the platform's SDK returns"
}


def unbounded(schema: Any, path: str, definitions: dict[str, Any]) -> Iterator[str]:
    """Yield the paths of numbers and lists in `schema` that have no bound."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if schema.get("type") in {"integer", "number"} and "enum" not in schema:
        low = {"minimum", "exclusiveMinimum"} & schema.keys()
        high = {"maximum", "exclusiveMaximum"} & schema.keys()
        if not (low and high):
            yield path
    if schema.get("type") == "array" and "maxItems" not in schema:
        yield f"{path}[]"
    for name, field in schema.get("properties", {}).items():
        yield from unbounded(field, f"{path}.{name}", definitions)
    for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from unbounded(inner, path, definitions)
    for name in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(name), dict):
            yield from unbounded(inner, f"{path}.*", definitions)


def of_model(model: type[Model], name: str) -> list[str]:
    schema = model.model_json_schema()
    return list(unbounded(schema, name, schema.get("$defs", {})))


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_and_list_of_a_config_has_bounds(kind: str):
    assert of_model(KINDS[kind].model, kind) == []


@pytest.mark.parametrize("row", SENT)
def test_every_number_and_list_of_a_request_has_bounds(row: str):
    assert [path for path in of_model(SENT[row], row) if not path.endswith(tuple(WITHOUT_BOUNDS))] == []


@pytest.mark.parametrize("client", OPTIONS)
def test_every_number_and_list_of_a_vendors_options_has_bounds(client: str):
    assert of_model(OPTIONS[client], client) == []


@pytest.mark.parametrize("seconds", [1e308, 86_401, 0, -1])
async def test_stream_of_any_length_is_refused_with_the_field(server: Server, seconds: float):
    url = f"{server.url}/admin/api/configs/default/limits/default"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with server.http.put(url, json={"value": {"stream_s": seconds}}, headers=headers) as response:
        assert response.status == 400
        assert (await response.json())["error"]["message"].startswith("invalid_parameter: stream_s must be ")
