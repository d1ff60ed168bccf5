"""The synchronous prediction over HTTP, against the sandbox's host."""

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.app.callers import ask, token, working
from tests.app.predictions.hosts import LONG_MS, VERSION, Studio
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.replicate import FILES


async def test_prediction_is_returned_when_it_has_ended(studio: Studio):
    status, answer = await studio.predict(output=["a", 1, {"b": None}], after_ms=300)
    made = {"prompt": "Alice", "output": ["a", 1, {"b": None}], "after_ms": 300}
    assert status == 200, answer
    assert {name: answer[name] for name in ("version", "input", "output", "status")} == {
        "version": VERSION,
        "input": made,
        "output": ["a", "1", '{"b":null}'],
        "status": "succeeded",
    }
    assert (answer["current_count"], answer["current_total_count"]) == (1, 2)
    assert answer["created"] > 1_700_000_000
    [created] = studio.asked("predictions")
    assert created.asked["input"] == made
    assert "webhook" not in created.asked


async def test_text_is_a_list_of_one_and_nothing_an_empty_list(studio: Studio):
    assert (await studio.predict())[1]["output"] == ["Alice"]
    assert (await studio.predict(output=[]))[1]["output"] == []


async def test_files_are_copied_to_our_store(studio: Studio):
    _, answer = await studio.predict(files=["a.png", "b.txt"])
    types, bodies = [], []
    for url in answer["output"]:
        assert url.startswith(f"{studio.server.url}/files/predictions/default/{studio.uid}/")
        async with studio.server.http.get(url) as response:
            types.append(response.content_type)
            bodies.append(await response.read())
            assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert types == ["image/png", "application/octet-stream"]
    assert bodies == [FILES["png"], FILES["txt"]]


@pytest.mark.parametrize(
    "url", ["https://example.com/a.png", "http://127.0.0.1:9/a.png", "https://evilreplicate.delivery/a.png"]
)
async def test_address_that_is_not_the_hosts_is_no_file(studio: Studio, url: str):
    assert (await studio.predict(output=url))[1]["output"] == [url]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/predictions",
        "/v1/webhooks/default/secret",
        "/v1/account",
        "/v1/files/a",
        "/files/../v1/predictions",
        "/",
    ],
)
async def test_what_else_is_at_the_hosts_address_is_no_file(studio: Studio, path: str):
    url = f"{studio.sandbox.url}/replicate{path}"

    assert (await studio.predict(output=url))[1]["output"] == [url]


async def test_text_that_only_begins_like_a_data_url_stays_text(studio: Studio):
    text = "data: x;base64, is how a data URL begins."

    assert (await studio.predict(output=text))[1]["output"] == [text]


async def test_data_url_is_a_file(studio: Studio):
    _, answer = await studio.predict(output={"image": "data:image/png;base64,iVBORw0KGgo="})
    [text] = answer["output"]
    assert text.startswith('{"image":"http')
    assert ".png?" in text


async def test_failed_prediction_is_a_response_and_does_not_use_the_quota(studio: Studio):
    status, answer = await studio.predict(fail="out of memory")
    assert (status, answer["status"], answer["error"], answer["output"]) == (200, "failed", "out of memory", [])
    assert (answer["current_count"], answer["current_total_count"]) == (2, 2)
    assert (await studio.predict(aborts=True))[1]["status"] == "canceled"


async def test_quota_is_free_units_of_the_day_then_granted_ones_then_none(studio: Studio):
    await studio.grant(1)
    counts = []
    for _ in range(3):
        _, answer = await studio.predict()
        counts.append((answer["current_count"], answer["current_total_count"]))
    assert counts == [(2, 3), (1, 3), (0, 3)]
    status, answer = await studio.predict()
    assert (status, answer["error"]["error_type"]) == (429, "ai_free_limit")
    assert len(studio.asked("predictions")) == 3


async def test_strategy_without_a_quota_counts_nothing(studio: Studio):
    await studio.set_up(quota=None)
    for _ in range(3):
        _, answer = await studio.predict()
        assert (answer["current_count"], answer["current_total_count"]) == (0, 0)


async def test_client_that_leaves_cancels_the_prediction_and_gets_its_units_back(studio: Studio):
    body = {"strategy": "faces", "version": VERSION, "input": {"prompt": "Alice", "after_ms": LONG_MS}}
    async with aiohttp.ClientSession() as http, working(studio.server.services):
        url, headers = f"{studio.server.url}/bp/ai/prediction", {"X-Service-Session-Token": studio.session}
        request = asyncio.ensure_future(http.post(url, json=body, headers=headers))  # noqa: TID251
        await until(lambda: studio.asked("get"))
        request.cancel()
        await asyncio.wait([request])
        await until(lambda: studio.asked("cancel"))
    assert await studio.left() == 2


async def test_waiting_requests_hold_no_connection_and_no_slot(studio: Studio):
    await studio.set_up(quota=None, account={"concurrency": 1})
    await studio.limit(40)
    results = await asyncio.gather(*(studio.predict(after_ms=800) for _ in range(40)))
    assert {status for status, _ in results} == {200}


async def test_user_waits_for_a_limited_number_of_predictions(studio: Studio):
    await studio.set_up(quota=None)
    await studio.limit(2)
    results = await asyncio.gather(*(studio.predict(after_ms=800) for _ in range(3)))
    refused = [answer["error"]["error_type"] for status, answer in results if status == 429]
    assert sorted(status for status, _ in results) == [200, 200, 429]
    assert refused == ["api_rate_limit"]
    assert (await studio.predict())[0] == 200


@pytest.mark.parametrize(
    ("key", "given", "status", "error"),
    [
        ("wrong", {}, 422, "config_invalid"),
        (key_of(fault="out_of_quota"), {}, 422, "config_invalid"),
        ("sandbox", {"after_ms": "soon"}, 400, "invalid_parameter"),
        (key_of(fault="rate_limited", retry_after_s=9), {}, 502, "backend unavailable"),
        (key_of(fault="server_error"), {}, 502, "backend unavailable"),
        (key_of(fault="refuse"), {}, 502, "backend unavailable"),
        (key_of(fault="malformed_frame"), {}, 502, "backend unavailable"),
        (key_of(fault="unavailable", skip=1, retry_after_s=0.01), {"after_ms": 100}, 502, "backend unavailable"),
    ],
)
async def test_faults_of_the_host_are_reported_and_give_the_units_back(
    studio: Studio, key: str, given: dict[str, Any], status: int, error: str
):
    await studio.set_up(key=key)
    got, answer = await studio.predict(**given)
    assert (got, answer["error"]["error_type"]) == (status, error), answer
    await studio.set_up()
    assert await studio.left() == 2


async def test_prediction_whose_response_was_lost_is_canceled_at_the_host(studio: Studio):
    await studio.set_up(key=key_of(fault="cut_mid_stream", times=1))
    async with working(studio.server.services):
        assert (await studio.predict(after_ms=LONG_MS))[0] == 502
        await until(lambda: studio.asked("cancel"))
    assert len(studio.asked("predictions")) == 1


async def test_only_listed_versions_are_called(studio: Studio):
    await studio.set_up(versions=[VERSION], models=["sandbox/official"], quota=None)
    assert (await studio.predict())[0] == 200
    assert (await studio.predict(version=f"any/name:{VERSION}"))[0] == 200
    assert (await studio.predict(version="sandbox/official", fail="x"))[0] == 200
    assert (await studio.predict(version=f"sandbox/official:{'b' * 64}"))[0] == 400
    for other in ("b" * 64, "another/model"):
        status, answer = await studio.predict(version=other)
        message = "invalid_parameter: version is not one of strategy faces"
        assert (status, answer["error"]["message"]) == (400, message)


async def test_app_server_predicts_for_a_user(studio: Studio):
    body = {"strategy": "faces", "version": VERSION, "input": {"prompt": "Alice"}}
    path = f"/bp/server/user/{studio.uid}/ai/prediction"
    status, answer = await ask(studio.server, "POST", path, json=body, headers=token(scope="ai"))
    assert (status, answer["output"]) == (200, ["Alice"])
    assert await studio.left() == 1
