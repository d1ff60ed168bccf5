"""Valid JSON of random shape, and random headers, in an error response: an error that can be sent to the client."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams.wire.codec import dumps
from streams.wire.errors import ServiceError
from tests.vendors.random_json import VERY_MANY, random_json
from vendors.http.refusals import refusal

BODIES = random_json(
    ["error", "detail", "message", "msg", "code", "status", "details", "retryDelay"],
    types=["quota_exceeded", "x"],
    texts=["3s", "1e999s", "insufficient_quota", "maximum context length"],
)
STATUSES = st.sampled_from([400, 401, 413, 422, 429, 500, 503, 529, 999])
TIMES = st.text(max_size=40) | st.sampled_from(
    ["3", "-1", "nan", "1e999", "Mon, 01 Jan 9999 00:00:00 -2359", "Mon"]
)
HEADERS = st.dictionaries(st.sampled_from(["Retry-After", "retry-after-ms"]), TIMES)


def check(status: int, body: Any, headers: dict[str, str]) -> None:
    error = refusal("vendor", status, dumps(body), headers)
    assert isinstance(error, ServiceError)
    dumps([error.what, error.extra])
    assert error.retry_after_s is None or error.retry_after_s >= 0


@given(STATUSES, BODIES, HEADERS)
@example(429, {"error": {"code": [None]}}, {})
def test_random_refusals(status: int, body: Any, headers: dict[str, str]) -> None:
    check(status, body, headers)


@pytest.mark.soak
@pytest.mark.timeout(0)
@settings(max_examples=VERY_MANY)
@given(STATUSES, BODIES, HEADERS)
def test_very_many_random_refusals(status: int, body: Any, headers: dict[str, str]) -> None:
    check(status, body, headers)
