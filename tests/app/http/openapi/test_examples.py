"""The recorded responses of the API reference conform to the schemas of today."""

import json  # noqa: TID251 - an independent reader
import re
from typing import Any

import pytest

from app.http.openapi.document import openapi
from app.http.openapi.responses import RECORDED
from app.routes import ROUTES
from tests.app.reference import check

pytestmark = pytest.mark.xdist_group("openapi")  # One worker creates the document.
MOST_USED = [
    ("GET", "/bp/user/me"),
    ("POST", "/bp/user/login"),
    ("GET", "/bp/ai/conversation/query"),
    ("GET", "/bp/ai/conversations"),
    ("GET", "/bp/ai/offers"),
    ("GET", "/bp/asset"),
    ("GET", "/bp/user/me/sessions"),
    ("GET", "/admin/api/users/{app}/{user_id}"),
]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return json.loads(json.dumps(openapi(ROUTES, public_url="https://parley.example")))


def test_each_recorded_response_is_one_of_its_operation(document: dict[str, Any]) -> None:
    recorded = json.loads(RECORDED.read_text())
    assert len(recorded) >= 70
    for name, value in recorded.items():
        method, path = name.split(" ", 1)
        content = document["paths"][path][method.lower()]["responses"]["200"]["content"]["application/json"]
        assert content["example"] == value, "run python -m deploy.reference.responses"
        check(document, content["schema"], value)
    for method, path in MOST_USED:
        assert f"{method} {path}" in recorded


def test_the_recorded_responses_have_no_credentials_and_no_paths_of_a_machine() -> None:
    text = RECORDED.read_text()
    assert not re.search(r"\b(?:st|parley_op)_[A-Za-z0-9]{20,}|eyJ[\w-]+\.|/(?:root|home|tmp|work|Users)/", text)
