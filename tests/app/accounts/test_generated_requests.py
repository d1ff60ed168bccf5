"""Requests that schemathesis generates from `/openapi.json` get no 500, and only responses that are documented."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from app.accounts.email.pages import ACCOUNT_PAGE_ROUTES
from app.accounts.routes import ACCOUNT_ROUTES
from tests.app.accounts.email.mailbox import Mailbox, open_mailbox
from tests.app.callers import ask, token
from tests.app.reference import template

# The server, in another thread, uses `random` while hypothesis looks for such a use by a strategy.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")


def operations() -> list[tuple[str, str]]:
    """The methods and the paths of the account endpoints, with those for an app's server, and of the pages."""
    rows = [*ACCOUNT_ROUTES, *ACCOUNT_PAGE_ROUTES]
    return sorted({(row.method, template(path)) for row in rows for path in row.paths})


async def check(box: Mailbox, *, examples: int) -> None:
    """Send `examples` valid requests, and as many invalid ones, to each operation."""
    import schemathesis  # noqa: PLC0415 - slow to import, for each worker of the tests

    server = box.server
    _, document = await ask(server, "GET", "/openapi.json")
    schema = schemathesis.openapi.from_dict(document)
    for method, path in operations():
        uid, session_token = await server.login()
        headers = {"X-Service-App-Id": "default", "X-Service-Api-Version": "1"}
        headers |= token() if path.startswith("/bp/server/") else {}
        headers["X-Service-Session-Token"] = session_token
        values = {"user_id": uid} if "{user_id}" in path else {}
        operation = schema[path][method]
        # It blocks its thread while it waits for a response.
        await asyncio.to_thread(send, operation, values, server.url, headers, examples)


def send(operation: Any, values: dict[str, str], url: str, headers: dict[str, str], examples: int) -> None:
    from schemathesis import GenerationMode  # noqa: PLC0415 - as above
    from schemathesis.specs.openapi import checks  # noqa: PLC0415

    conformance = [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]
    for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:
        more = {"path_parameters": values} if values else {}

        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(case=operation.as_strategy(generation_mode=mode, **more))
        def call_once(case: Any) -> None:
            response = case.call(base_url=url, headers=headers, allow_redirects=False)
            assert response.status_code != 500, (case.as_curl_command(), response.text)
            case.validate_response(response, checks=conformance)

        call_once()


@pytest.fixture(scope="module")
async def testbed(databases, tmp_path_factory):
    async with open_mailbox(databases, tmp_path_factory.mktemp("data")) as box:
        await box.configure(code_login=True, activation=True)
        yield box


async def test_generated_requests_get_documented_responses(testbed: Mailbox):
    await check(testbed, examples=1)


@pytest.mark.soak
async def test_many_generated_requests_get_documented_responses(testbed: Mailbox):
    await check(testbed, examples=300)
