"""Requests without a body at endpoints that read their body in parts."""

import pytest

from app.http.callers.caller import Access
from app.http.rows.inputs import Source
from app.routes import ROUTES
from tests.app.ai.conftest import Talk

CHUNKED = [
    row.path
    for row in ROUTES
    if row.area.access is not Access.ADMIN
    if row.inputs.body is not None and row.inputs.body.source is Source.CHUNKED
]


@pytest.mark.parametrize("path", CHUNKED)
async def test_each_request_without_a_body_is_refused(talk: Talk, path: str) -> None:
    """Several requests are sent, because aiohttp has a single object for all empty bodies."""
    for _ in range(3):
        async with talk.post(path, data=b"") as response:
            assert response.status == 400
            answer = await response.json()
        assert answer["error"]["message"] == (
            "invalid_parameter: body must contain a complete JSON object of parameters"
        )
