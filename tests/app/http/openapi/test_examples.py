"""Each operation of the API reference has a worked example, which conforms to the schemas of today."""

import json  # noqa: TID251 - an independent reader
import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.http.openapi.document import openapi
from app.http.openapi.responses import RECORDED, response_name
from app.http.rows.endpoint import Endpoint
from app.routes import ROUTES
from tests.app.reference import check, template

pytestmark = pytest.mark.xdist_group("openapi")  # One worker creates the document.
WITHOUT_RESPONSE = {
    "GET /openapi.json": "the document is no part of itself",
    "POST /bp/webhook/cardpay/{app_id}/{config}": "only the platform can sign it; the response is empty",
    "POST /bp/webhook/walletpay/{app_id}/{config}": "only the platform can sign it; the response is empty",
    "POST /bp/webhook/payouts/{app_id}/{config}": "only the platform can sign it; the response is empty",
    "POST /bp/webhook/model_host/{app_id}/{config}": "only the platform can sign it; the response is empty",
    "POST /bp/webhook/image_host/{app_id}/{config}": "only the platform can sign it; the response is empty",
}
"""The operations that have no example of a response, and why."""
MAX_BYTES = 400_000
MAX_ITEMS = 2


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return json.loads(json.dumps(openapi(ROUTES, public_url="https://parley.example")))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, Endpoint, dict[str, Any]]]:
    for row in ROUTES:
        for path in map(template, row.paths):
            yield f"{row.method} {path}", row, document["paths"][path][row.method.lower()]


def test_each_operation_with_a_body_has_an_example_of_it(document: dict[str, Any]) -> None:
    for name, _, operation in operations(document):
        for described in operation.get("requestBody", {"content": {}})["content"].values():
            assert described.get("examples"), name


def test_each_operation_has_an_example_of_its_response(document: dict[str, Any]) -> None:
    recorded = json.loads(RECORDED.read_text())
    used = set()
    for name, row, operation in operations(document):
        if row.docs.stream is not None:
            assert operation["responses"]["200"]["content"]["text/event-stream"]["examples"], name
            continue
        if name in WITHOUT_RESPONSE:
            continue
        assert response_name(row) in recorded, f"{name}: run python -m deploy.reference.responses"
        used.add(response_name(row))
        example = recorded[response_name(row)]
        response = operation["responses"][str(example["status"])]
        if "location" in example:
            assert response["headers"]["Location"]["example"] == example["location"]
        if "body" not in example:
            assert row.method == "HEAD" or not response.get("content"), name
            continue
        content = response["content"]
        described = content.get(example["media_type"]) or content["*/*"]
        assert described["example"] == example["body"], name
        if "schema" in described:
            check(document, described["schema"], example["body"])
    assert recorded.keys() == used
    assert recorded["POST /bp/user/email/verify"]["location"].endswith("?verified=true")


def test_the_recorded_responses_are_short() -> None:
    assert len(RECORDED.read_bytes()) <= MAX_BYTES
    lists = [node for node in _nodes(json.loads(RECORDED.read_text())) if isinstance(node, list)]
    assert lists
    assert max(map(len, lists)) <= MAX_ITEMS


def _nodes(value: Any) -> Iterator[Any]:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _nodes(inner)


def test_the_recorded_responses_have_no_credentials_and_no_paths_of_a_machine() -> None:
    text = RECORDED.read_text()
    assert not re.search(r"\b(?:st|ba|parley_op)_[A-Za-z0-9]{20,}|eyJ[\w-]+\.|/(?:root|home|tmp|work|Users)/", text)
    assert set(re.findall(r"http://[\d.]+:\d+", text)) == {"http://127.0.0.1:8080"}
