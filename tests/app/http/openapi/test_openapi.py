"""The OpenAPI document is complete, valid, and agrees with the code."""

import base64
import hashlib
import inspect
import json  # noqa: TID251 - an independent reader
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from app.accounts.errors import OperationNotAllowed
from app.http.errors import (
    HeadTimeout,
    HostUnknown,
    HttpVersionUnsupported,
    MethodNotAllowed,
    TransferCodingUnsupported,
    status_of,
)
from app.http.openapi.bodies import bodies_of
from app.http.openapi.document import openapi
from app.http.rows.endpoint import Endpoint
from app.http.rows.inputs import Source
from app.http.rows.row_errors import errors_of
from app.routes import ROUTES
from storage.accounts.codes import CodeRefused
from streams.events import Event
from streams.wire.errors import Conflict, InvalidOperation, ItemNotFound, NotFound, ServiceError, StoreError
from tests.app.reference import check_events, operations, template, values_of
from tests.peers.sse_client import SeenEvent
from vendors.errors import VendorError
from vendors.mail.smtp import ContentRefused, RecipientDeferred, RecipientRefused

pytestmark = pytest.mark.xdist_group("openapi")  # One worker creates the document.

PUBLIC_URL = "https://parley.example"
STREAMS = [row for row in ROUTES if row.docs.stream]
BASES = {CodeRefused, Conflict, InvalidOperation, ItemNotFound, NotFound, OperationNotAllowed}
BEFORE_A_ROW = {HeadTimeout, HostUnknown, HttpVersionUnsupported, MethodNotAllowed, TransferCodingUnsupported}
OF_JOBS = {ContentRefused, RecipientDeferred, RecipientRefused}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    made = openapi(ROUTES, public_url=PUBLIC_URL)
    return json.loads(json.dumps(made))


def _ids(row: Endpoint) -> str:
    return f"{row.method} {row.path}"


def test_the_document_is_valid_openapi(document) -> None:
    from openapi_spec_validator import validate  # noqa: PLC0415 - slow to import, for each worker of the tests

    validate(document)
    assert document["openapi"] == "3.1.0"
    assert document["servers"] == [{"url": PUBLIC_URL}]


def test_the_document_has_every_row_with_its_s2s_path_and_nothing_else(document) -> None:
    rows = {(row.method, template(path)) for row in ROUTES for path in row.paths}
    assert {(method, path) for method, path, _ in operations(document)} == rows
    assert sum(len(row.paths) for row in ROUTES) == len(rows)


def test_every_reference_can_be_resolved(document) -> None:
    found = list(values_of(document, "$ref"))
    assert found
    for reference in found:
        node = document
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]


def test_operations_have_unique_names(document) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)


def test_models_have_unique_names(document) -> None:
    # Two models with the same name, or one for both requests and replies, would get names with their modules.
    names = document["components"]["schemas"]
    assert all(name.isidentifier() and "__" not in name for name in names), sorted(names)


def test_every_operation_has_a_short_summary(document) -> None:
    tags = {tag["name"] for tag in document["tags"]}
    for method, path, operation in operations(document):
        assert 3 <= len(operation["summary"]) <= 64, (method, path)
        assert set(operation["tags"]) <= tags
        assert all(parameter.get("description") != "" for parameter in operation["parameters"]), path
    assert all(inspect.getdoc(row.handler) for row in ROUTES)
    titles = {(row.area.group, row.area.title, row.area.description) for row in ROUTES}
    assert len(titles) == len({row.area.group for row in ROUTES}), "variants of an area are one group"


def test_every_description_begins_with_what_the_operation_does(document) -> None:
    for method, path, operation in operations(document):
        first, *_ = operation["description"].split("\n\n")
        assert re.match(r"[A-Z][a-z]+s\b", first), (method, path, first)
        assert not re.match(r"(This|Its)\b", first), (method, path, first)
        assert first.endswith("."), (method, path, first)
        assert len(re.findall(r"\.\s+[A-Z`]", first)) <= 1, (method, path, first)


def test_every_response_says_what_it_has(document) -> None:
    for method, path, operation in operations(document):
        for status, response in operation["responses"].items():
            assert response["description"] not in {"", "The reply."}, (method, path, status)
            assert response["description"].partition("\n")[0].endswith((".", ":")), (method, path, status)


def test_operations_are_grouped_by_who_calls_them_with_conversations_first(document) -> None:
    grouped = {group["name"]: group["tags"] for group in document["x-tagGroups"]}
    assert [*grouped] == ["Apps", "App servers", "Operators", "Webhooks", "Development"]
    assert grouped["Apps"][:4] == ["ai", "speech", "pronunciation", "account"]
    assert [name for names in grouped.values() for name in names] == [tag["name"] for tag in document["tags"]]
    group_of = {name: group for group, names in grouped.items() for name in names}
    for _, path, operation in operations(document):
        (tag,) = operation["tags"]
        schemes = {scheme for alternative in operation["security"] for scheme in alternative}
        assert ("admin" in schemes) <= (group_of[tag] == "Operators"), path
        assert path.startswith("/bp/server/") == (group_of[tag] == "App servers"), path
        assert path.startswith("/bp/webhook/") == (group_of[tag] == "Webhooks"), path
        assert path.startswith("/dev/") <= (group_of[tag] == "Development"), path
        assert path.startswith("/bp/ai/conversation") <= (tag == "ai"), path


def test_no_section_is_longer_than_can_be_looked_through(document) -> None:
    of_sections = Counter(operation["tags"][0] for _, _, operation in operations(document))
    assert of_sections.keys() == {tag["name"] for tag in document["tags"]}
    assert max(of_sections.values()) <= 25, of_sections.most_common(3)


def test_security_schemes_follow_from_the_row(document) -> None:
    def security(path: str, method: str) -> Any:
        return document["paths"][path][method]["security"]

    pair = {"session": [], "sign": []}
    assert security("/bp/ai/conversation", "post") == [pair]
    assert security("/bp/server/user/{user_id}/ai/conversation", "post") == [{"server": ["ai"]}]
    assert security("/bp/user/login", "post") == [{"sign": []}]
    assert security("/bp/server/user/login", "post") == [{"server": ["account"]}]
    assert security("/bp/server/user/logout", "post") == [{"server": ["account"], "session": []}, pair]
    assert security("/bp/server/user/{user_id}", "get") == [{"server": ["account"]}, pair]
    assert security("/admin/api/kinds", "get") == [{"admin": ["viewer"]}]
    assert security("/admin/api/configs/{app}/{kind}/{name}", "put") == [{"admin": ["editor"]}]
    assert security("/admin/api/operators", "get") == [{"admin": ["admin"]}]
    assert security("/healthz", "get") == []


def test_query_parameters_have_their_names_on_the_wire_and_are_never_null(document) -> None:
    reported = document["paths"]["/bp/ai/conversation/query"]["get"]["parameters"]
    query = {parameter["name"]: parameter for parameter in reported if parameter.get("in") == "query"}
    assert {name: parameter["required"] for name, parameter in query.items()} == {
        "conversation_id": True,
        "from": False,
        "size": False,
        "record_id": False,
    }
    bounds = {"exclusiveMinimum": -(10**18), "exclusiveMaximum": 10**18}
    assert query["from"]["schema"] == {"type": "integer", "default": -1, **bounds}
    assert query["record_id"]["schema"] == {"type": "integer", **bounds}
    assert "newest" in query["from"]["description"]


def test_absent_fields_are_omitted_in_replies_and_null_in_events(document) -> None:
    schemas = document["components"]["schemas"]
    user, end = schemas["UserView"], schemas["ConversationEnd"]
    assert user["properties"]["session"] == {
        "$ref": "#/components/schemas/SessionView",
        "description": "Only in responses to login and signup.",
    }
    assert "session" not in user["required"]
    assert {"type": "null"} in end["properties"]["record_id"]["anyOf"]
    assert "record_id" in end["required"]


def test_every_operation_lists_its_errors_with_their_statuses(document) -> None:
    for row in ROUTES:
        for path in row.paths:
            responses = document["paths"][template(path)][row.method.lower()]["responses"]
            reported = set(map(str, row.docs.answers))
            for error in errors_of(row, path):
                status = status_of(error, row.area.statuses)
                assert status not in row.docs.answers, path
                response = responses[str(status)]
                narrowed = response["content"]["application/json"]["schema"]["properties"]["error"]["properties"]
                assert error.error_type in narrowed["error_type"]["enum"]
                assert f"- `{error.error_type}`: {' '.join(error.__doc__.split())}" in response["description"]
                reported.add(str(status))
            assert responses.keys() - {"200"} == reported - {"200"}


def test_every_error_has_a_short_description() -> None:
    errors = {error for row in ROUTES for path in row.paths for error in errors_of(row, path)}
    errors |= {error for row in STREAMS for error in row.docs.stream.errors}
    assert len(errors) > 30
    for error in errors:
        assert 400 <= error.status < 600
        meaning = vars(error)["__doc__"]
        assert meaning
        assert meaning.rstrip().endswith(".")
        assert len(meaning) < 300


def test_every_error_of_the_server_is_listed_by_a_row() -> None:
    listed = {error for row in ROUTES for path in row.paths for error in errors_of(row, path)}
    listed |= {error for row in STREAMS for error in row.docs.stream.errors}
    families = {StoreError, *_subclasses(StoreError), VendorError, *_subclasses(VendorError)}
    unlisted = {*_subclasses(ServiceError)} - listed - families
    assert unlisted == BASES | BEFORE_A_ROW | OF_JOBS


def _subclasses(error: type[ServiceError]) -> Iterator[type[ServiceError]]:
    for subclass in error.__subclasses__():
        if not subclass.__module__.startswith("tests."):
            yield subclass
            yield from _subclasses(subclass)


@pytest.mark.parametrize("row", STREAMS, ids=_ids)
def test_transcripts_are_complete_streams_of_documented_events(document, row: Endpoint) -> None:
    for path in row.paths:
        operation = document["paths"][template(path)][row.method.lower()]
        examples = operation["responses"]["200"]["content"]["text/event-stream"]["examples"]
        assert examples
        for example in examples.values():
            seen = _events(example["value"])
            assert [event.id for event in seen] == list(range(1, len(seen) + 1))
            assert seen[0].name == "start"
            assert seen[-1].name in {"end", "error"}
            assert {"end", "error", "start"}.isdisjoint(event.name for event in seen[1:-1])
            check_events(document, operation, seen)
            if seen[-1].name == "end":
                assert seen[-1].content["digest"] == _digest(seen)


def _events(transcript: str) -> list[SeenEvent]:
    *frames, rest = transcript.split("\n\n")
    assert not rest
    seen = []
    for frame in frames:
        fields = dict(line.split(": ", 1) for line in frame.split("\n"))
        assert fields.keys() == {"id", "event", "data"}
        data = json.loads(fields["data"])
        seen.append(SeenEvent(int(fields["id"]), fields["event"], data["content"], data["timestamp"]))
    return seen


def _digest(seen: list[SeenEvent]) -> dict[str, Any]:
    sha, chars = hashlib.sha256(), 0
    for event in seen:
        if event.name == "assistant_output_chunk":
            sha.update(event.content["text"].encode())
            chars += len(event.content["text"])
        elif event.name.endswith("audio_chunk"):
            sha.update(base64.b64decode(event.content["audio"], validate=True))
    return {"chars": chars, "sha256": sha.hexdigest()}


def test_every_event_of_the_server_is_documented(document) -> None:
    reported = {
        event["event"] for _, _, operation in operations(document) for event in operation.get("x-events", ())
    }
    assert reported == {event.name for event in Event.__subclasses__()} | {"ping"}


def test_example_bodies_are_valid_requests() -> None:
    examples = [(row.inputs.body, value) for row in ROUTES for value in bodies_of(row).values()]
    assert examples
    for body, value in examples:
        assert body is not None
        if body.source is Source.RAW_BODY:
            continue
        if body.source is not Source.CHUNKED:
            body.model.of(value)
            continue
        parameters, end = json.JSONDecoder().raw_decode(value)
        body.model.of(parameters)
        if parameters.get("type", "audio") == "audio":
            base64.b64decode(value[end:], validate=True)
        else:
            assert value[end:].strip()
