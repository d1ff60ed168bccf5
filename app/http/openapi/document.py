"""Generates the OpenAPI 3.1 document from the route table, so that it always matches the server."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.http.caller import Access
from app.http.docs import Stream
from app.http.endpoint import API_VERSION, Endpoint
from app.http.openapi.errors import ErrorReply, error_responses
from app.http.openapi.events import event_list, event_table, models_of
from app.http.openapi.prose import ABOUT, HEADERS, PATH_PARAMETERS, RATE_LIMITS, SECURITY_SCHEMES, TAGS
from app.http.openapi.schemas import Schemas, query_schema
from streams.wire.model import Model

_TEMPLATE = re.compile(r"\{(\w+)(?::[^{}]*)?\}")
_JSON = "application/json"
_CHUNKED = "application/octet-stream"
_REQUEST_ID = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}
_RATE_LIMITS = {name: {"$ref": f"#/components/headers/{name}"} for name in RATE_LIMITS}


def openapi(routes: Sequence[Endpoint], *, public_url: str) -> dict[str, Any]:
    """Return the document of all rows and their S2S forms."""
    schemas = Schemas(requests=_request_models(routes), responses=[ErrorReply, *_response_models(routes)])
    paths: dict[str, dict[str, Any]] = {}
    for row in routes:
        for path in filter(None, (row.path, row.s2s)):
            operation = _operation(row, path, schemas, s2s=path == row.s2s)
            paths.setdefault(_TEMPLATE.sub(r"{\1}", path), {})[row.method.lower()] = operation
    used = {row.tag for row in routes}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Parley", "version": API_VERSION, "description": ABOUT.strip()},
        "servers": [{"url": public_url}],
        "tags": [
            {"name": name, "x-displayName": title, "description": f"Tag `{name}`. {text}"}
            for name, (title, text) in TAGS.items()
            if name in used
        ],
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
    return [model for row in routes for model in (row.docs.chunked, row.body) if model is not None]


def _response_models(routes: Sequence[Endpoint]) -> Iterator[type[Model]]:
    for row in routes:
        if row.reply is not None:
            yield row.reply
        if row.docs.stream is not None:
            yield from models_of(row.docs.stream)


def _operation(row: Endpoint, path: str, schemas: Schemas, *, s2s: bool) -> dict[str, Any]:
    summary, description = _summary_and_description(row)
    operation: dict[str, Any] = {
        "operationId": _operation_id(row, s2s=s2s),
        "summary": f"{summary} (S2S)" if s2s else summary,
        "description": description,
        "tags": [row.tag],
        "security": list(_security(row, s2s=s2s)),
        "parameters": list(_parameters(row, path)),
        "responses": {**_responses(row, schemas), **error_responses(row, schemas, s2s=s2s)},
    }
    if s2s or row.limit is not None:
        for status, response in operation["responses"].items():
            if status in {"200", "429"}:  # Errors of earlier checks precede the count.
                response["headers"] = {**response.get("headers", {}), **_RATE_LIMITS}
    if (body := _request_body(row, schemas)) is not None:
        operation["requestBody"] = body
    if (stream := row.docs.stream) is not None:
        events = event_list(stream, schemas)
        operation["x-events"] = events
        operation["description"] = f"{description}\n\n{event_table(events, schemas)}".strip()
    return operation


def _operation_id(row: Endpoint, *, s2s: bool) -> str:
    ends = [*(["head"] if row.method == "HEAD" else []), *(["s2s"] if s2s else [])]
    return "_".join([row.tag, row.handler.__name__, *ends])


def _summary_and_description(row: Endpoint) -> tuple[str, str]:
    """Return the first sentence of the handler's docstring without its full stop, and the rest."""
    text = inspect.getdoc(row.handler) or row.handler.__name__.replace("_", " ").capitalize()
    first, _, rest = text.partition("\n\n")
    summary, stop, more = " ".join(first.split()).partition(". ")
    return summary.rstrip("."), "\n\n".join(part for part in (more if stop else "", rest.strip()) if part)


def _security(row: Endpoint, *, s2s: bool) -> Iterator[dict[str, list[str]]]:
    """Yield the alternative security requirements. All schemes of one requirement are needed together."""
    session: dict[str, list[str]] = {"session": [], "sign": []}
    if row.access is Access.ADMIN:
        yield {"admin": []}
    elif s2s:
        named = "{user_id}" in (row.s2s or "") or row.access is not Access.SESSION
        yield {"server": []} if named else {"server": [], "session": []}
        if row.accepts_session:
            yield session
    elif row.access is Access.SESSION:
        yield session
    elif row.access is Access.SIGNED:
        yield {"sign": []}


def _parameters(row: Endpoint, path: str) -> Iterator[dict[str, Any]]:
    for name in _TEMPLATE.findall(path):
        text = PATH_PARAMETERS.get(name, "")
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "description": text}
    if row.query is not None:
        query = query_schema(row.query)
        for name, schema in query["properties"].items():
            described = {"description": schema.pop("description")} if "description" in schema else {}
            required = name in query.get("required", ())
            yield {"name": name, "in": "query", "required": required, "schema": schema, **described}
    for name, text in row.docs.headers.items():
        yield {"name": name, "in": "header", "schema": {"type": "string"}, "description": text}
    for name in HEADERS:
        if name != "AppId" or row.access is not Access.ADMIN:
            yield {"$ref": f"#/components/parameters/{name}"}


def _request_body(row: Endpoint, schemas: Schemas) -> dict[str, Any] | None:
    examples = {summary: {"value": value} for summary, value in row.docs.bodies.items()}
    if (chunked := row.docs.chunked) is not None:
        described: dict[str, Any] = {"schema": schemas.request(chunked)}
        media_type, description = _CHUNKED, "The parameters as a JSON object, directly followed by the input."
    elif row.body is not None:
        described, media_type, description = {"schema": schemas.request(row.body)}, _JSON, ""
    else:
        return None
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
    elif row.reply is not None:
        responses["200"] = _response("The reply.", _JSON, {"schema": schemas.response(row.reply)})
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
        "The stream has begun. Later failures are reported by its `error` event.",
        "text/event-stream",
        described,
    )
    headers = {name: {"description": text, "schema": {"type": "string"}} for name, text in stream.headers.items()}
    return {**response, "headers": {**_REQUEST_ID, **headers}}
