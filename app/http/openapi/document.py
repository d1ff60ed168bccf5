"""Generates the OpenAPI 3.1 document from the route table, so that it always matches the server."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.http.callers.caller import Access
from app.http.openapi.bodies import bodies_of
from app.http.openapi.descriptions import content_of, description_of, summary_of
from app.http.openapi.errors import ErrorReply, error_responses
from app.http.openapi.events import event_errors, event_list, events_described, models_of
from app.http.openapi.groups import tag_groups, tag_of, tags
from app.http.openapi.prose import (
    HEADERS,
    ONE_CALL,
    PATH_PARAMETERS,
    RATE_LIMITS,
    SECURITY_SCHEMES,
    about,
)
from app.http.openapi.responses import with_response
from app.http.openapi.samples import code_samples
from app.http.openapi.schemas import Schemas, parameter_schemas
from app.http.paths import USER_ID, is_server_path, names_in, template_of
from app.http.rows import idempotency
from app.http.rows.docs import Stream
from app.http.rows.endpoint import API_VERSION, Endpoint
from app.http.rows.inputs import Source
from streams.wire.model import Model

_JSON = "application/json"
_BYTES = "application/octet-stream"
_REQUEST_ID = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}
_RATE_LIMITS = {name: {"$ref": f"#/components/headers/{name}"} for name in RATE_LIMITS}


def openapi(routes: Sequence[Endpoint], *, public_url: str, guides: bool = True) -> dict[str, Any]:
    """Return the document of all rows and their S2S forms. `guides`: whether it links to the guides."""
    schemas = Schemas(requests=_request_models(routes), responses=[ErrorReply, *_response_models(routes)])
    paths: dict[str, dict[str, Any]] = {}
    for row in routes:
        for path in row.paths:
            paths.setdefault(template_of(path), {})[row.method.lower()] = _operation(row, path, schemas, public_url)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Parley", "version": API_VERSION, "description": about(public_url, guides=guides)},
        "servers": [{"url": public_url}],
        "tags": tags(routes),
        "x-tagGroups": tag_groups(routes),
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "parameters": HEADERS,
            "headers": {
                "RequestId": {"description": "The id of this request.", "schema": {"type": "string"}},
                **{name: {"description": text, "schema": {"type": "string"}} for name, text in RATE_LIMITS.items()},
            },
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def _request_models(routes: Sequence[Endpoint]) -> list[type[Model]]:
    bodies = (row.inputs.body for row in routes)
    return [body.model for body in bodies if body is not None and body.source is not Source.RAW_BODY]


def _response_models(routes: Sequence[Endpoint]) -> Iterator[type[Model]]:
    for row in routes:
        if row.inputs.reply is not None:
            yield row.inputs.reply
        if row.docs.stream is not None:
            yield from models_of(row.docs.stream)


def _operation(row: Endpoint, path: str, schemas: Schemas, url: str) -> dict[str, Any]:
    s2s, stream = is_server_path(path), row.docs.stream
    description = [description_of(row, path)]
    if s2s and row.area.single_use_token:
        description.append(ONE_CALL)
    operation: dict[str, Any] = {
        "operationId": _operation_id(row, s2s=s2s),
        "summary": f"{summary_of(row)}{_suffix(row, s2s=s2s)}",
        "tags": [tag_of(row, path)],
        "security": list(_security(row, path)),
        "parameters": list(_parameters(row, path)),
        "responses": {**_responses(row, schemas), **error_responses(row, schemas, path)},
    }
    if s2s or row.limit is not None:
        for status, response in operation["responses"].items():
            if status not in {"401", "403"}:  # Their caller is not known.
                response["headers"] = {**response.get("headers", {}), **_RATE_LIMITS}
    if (body := _request_body(row, schemas)) is not None:
        operation["requestBody"] = body
    if stream is not None:
        events = operation["x-events"] = event_list(stream, schemas)
        if path == row.path and row.alias_of is None:
            description += [events_described(events, schemas), f"#### Errors\n\n{event_errors(stream)}"]
    operation["description"] = "\n\n".join(description)
    with_response(operation, row)
    operation["x-codeSamples"] = code_samples(row, path, operation, url=url)
    if row.alias_of is not None:
        operation["deprecated"] = True
    return operation


def _operation_id(row: Endpoint, *, s2s: bool) -> str:
    ends = {"head": row.method == "HEAD", "alias": row.alias_of is not None, "s2s": s2s}
    return "_".join([row.area.group, row.handler.__name__, *(name for name, applies in ends.items() if applies)])


def _suffix(row: Endpoint, *, s2s: bool) -> str:
    if row.area.access is Access.WEBHOOK:
        return " (webhook)"
    return " (S2S)" if s2s else ""


def _security(row: Endpoint, path: str) -> Iterator[dict[str, list[str]]]:
    """Yield the alternative security requirements. All schemes of one requirement are needed together."""
    area = row.area
    session: dict[str, list[str]] = {"session": [], "sign": []}
    if area.role is not None:
        yield {"admin": [area.role.value]}
    elif is_server_path(path):
        named = USER_ID in names_in(path) or area.access is not Access.SESSION
        yield {"server": [area.scope]} if named else {"server": [area.scope], "session": []}
        if area.accepts_session:
            yield session
    elif area.access is Access.SESSION:
        yield session
    elif area.access is Access.SIGNED:
        yield {"sign": []}


def _parameters(row: Endpoint, path: str) -> Iterator[dict[str, Any]]:
    described = {name: schema for name, schema, _ in parameter_schemas(row.inputs.path)}
    for name in names_in(path):
        schema = described.get(name, {"type": "string", "description": PATH_PARAMETERS.get(name, "")})
        text = schema.pop("description", "")
        yield {"name": name, "in": "path", "required": True, "schema": schema, "description": text}
    for name, schema, required in parameter_schemas(row.inputs.query):
        text = {"description": schema.pop("description")} if "description" in schema else {}
        yield {"name": name, "in": "query", "required": required, "schema": schema, **text}
    headers = dict(row.docs.headers)
    if row.inputs.transaction is not None:
        headers[idempotency.HEADER] = idempotency.DESCRIPTION
    for name, text in headers.items():
        yield {"name": name, "in": "header", "schema": {"type": "string"}, "description": text}
    for name in HEADERS:
        if _accepts(row, name):
            yield {"$ref": f"#/components/parameters/{name}"}


def _accepts(row: Endpoint, header: str) -> bool:
    """Return whether an operation uses one of the common headers."""
    match header:
        case "AppId":
            return row.area.access not in {Access.ADMIN, Access.WEBHOOK}
        case "Reason":
            return row.area.role is not None and row.method != "GET"
        case _:
            return True


def _request_body(row: Endpoint, schemas: Schemas) -> dict[str, Any] | None:
    examples = {summary: {"value": value} for summary, value in bodies_of(row).items()}
    if (given := row.inputs.body) is None:
        return None
    media_type, description, described = _JSON, "", {}
    if given.source is Source.RAW_BODY:
        media_type = "*/*"
    else:
        described["schema"] = schemas.request(given.model)
    if given.source is Source.CHUNKED:
        media_type, description = _BYTES, "The parameters as a JSON object, directly followed by the input."
    if examples:
        described["examples"] = examples
    body = {"required": True, "content": {media_type: described}}
    return {**body, "description": description} if description else body


def _responses(row: Endpoint, schemas: Schemas) -> dict[str, Any]:
    answers = row.docs.answers
    responses = {
        str(status): _response(answer.description, answer.media_type) for status, answer in answers.items()
    }
    if row.docs.stream is not None:
        responses["200"] = _stream(row.docs.stream)
    elif row.inputs.reply is not None:
        text = answers[200].description if 200 in answers else content_of(row.inputs.reply)
        responses["200"] = _response(text, _JSON, {"schema": schemas.response(row.inputs.reply)})
    elif not answers:
        responses["200"] = _response("Success. The body is empty.", "")
    return responses


def _response(description: str, media_type: str, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
    response: dict[str, Any] = {"description": description, "headers": _REQUEST_ID}
    return {**response, "content": {media_type: content or {}}} if media_type else response


def _stream(stream: Stream) -> dict[str, Any]:
    examples = {summary: {"value": transcript.decode()} for summary, transcript in stream.transcripts.items()}
    described = {"schema": {"type": "string"}, "examples": examples}
    response = _response(
        "The events of the stream. A failure after its start is its `error` event.",
        "text/event-stream",
        described,
    )
    headers = {name: {"description": text, "schema": {"type": "string"}} for name, text in stream.headers.items()}
    return {**response, "headers": {**_REQUEST_ID, **headers}}
