"""Asynchronous predictions over HTTP: their job, their webhook, and the death of a worker at any step."""

from typing import Any

import pytest

from tests.app.callers import ask, work_off, working
from tests.app.predictions.hosts import LONG_MS, VERSION, Studio, advance
from tests.calendar.clock import epoch_s
from tests.running.another_server import another_server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.replicate import WEBHOOK_KEY
from vendors.sinks.webhook import ID, SIGNATURE, TIMESTAMP, signature

WEBHOOK = "/bp/webhook/model_host/default/host"


async def test_prediction_is_made_by_a_job_and_read_when_it_has_ended(studio: Studio):
    await studio.grant(5)
    status, answer = await studio.later(output=["a", "b"])
    assert status == 200, answer
    assert (answer["current_count"], answer["current_total_count"]) == (6, 7)
    assert [(asset["name"], asset["quantity"]) for asset in answer["asset"]] == [("coins", 5)]
    first = await studio.state(answer["id"])
    assert first == {"id": answer["id"], "status": "starting", "output": []}
    async with working(studio.server.services):
        assert await studio.ended(answer["id"]) == {
            "id": answer["id"],
            "status": "succeeded",
            "output": ["a", "b"],
        }
    assert await studio.left() == 6


_POSTPONE = "update procrastinate_jobs set scheduled_at = now() + '1 day' where task_name = 'follow_prediction'"


async def test_webhook_ends_a_prediction_that_is_polled_rarely(studio: Studio):
    _, answer = await studio.later(after_ms=300)
    await studio.work_off()  # It is created and read once; the next job waits for a second and more.
    async with studio.server.services.database.connection() as conn:
        # Not the job of the webhook, which may have arrived already.
        await conn.execute(_POSTPONE)
    async with working(studio.server.services):
        assert (await studio.ended(answer["id"]))["status"] == "succeeded"
    [created] = studio.asked("predictions")
    assert created.asked["webhook"] == f"{studio.server.url}{WEBHOOK}"
    assert created.asked["webhook_events_filter"] == ["completed"]


async def test_prediction_whose_webhook_is_lost_is_polled(studio: Studio):
    _, answer = await studio.later(after_ms=300, webhook="lost")
    async with working(studio.server.services):
        assert (await studio.ended(answer["id"]))["status"] == "succeeded"


async def test_prompt_in_a_webhook_is_not_stored(studio: Studio):
    _, answer = await studio.later(prompt="a secret")
    async with working(studio.server.services):
        await studio.ended(answer["id"])
        await until(lambda: stored_bodies(studio))
    bodies = await stored_bodies(studio)
    assert all(b"id" in body and b"secret" not in body for body in bodies)


async def stored_bodies(studio: Studio) -> list[bytes]:
    async with studio.server.services.database.connection() as conn:
        return [row["body"] for row in await conn.fetch("select body from webhooks where source = 'model_host'")]


async def test_webhook_that_is_not_signed_by_the_host_changes_nothing(studio: Studio):
    async def deliver(*, key: bytes = WEBHOOK_KEY, t: int | None = None, config: str = "host") -> int:
        t, body = int(epoch_s()) if t is None else t, b'{"id": "1", "status": "succeeded"}'
        headers = {ID: "msg_1", TIMESTAMP: str(t), SIGNATURE: signature(key, "msg_1", body, t=t)}
        path = f"/bp/webhook/model_host/default/{config}"
        return (await ask(studio.server, "POST", path, data=body, headers=headers))[0]

    assert await deliver(key=b"another") == 400
    assert await deliver(t=int(epoch_s()) - 400) == 400
    assert await deliver(config="scripted") == 404
    assert await deliver(config="missing") == 404
    assert [await deliver(), await deliver()] == [200, 200]  # A repeat is not stored again.


async def test_failed_prediction_gives_the_units_back(studio: Studio):
    failed = (await studio.later(fail="out of memory"))[1]
    refused = (await studio.later(after_ms="soon"))[1]
    assert (refused["current_count"], (await studio.later())[0]) == (0, 429)
    async with working(studio.server.services):
        assert (await studio.ended(failed["id"]))["error"] == "out of memory"
        assert "must be an integer" in (await studio.ended(refused["id"]))["error"]
    assert await studio.left() == 2


async def test_host_is_asked_again_until_it_answers(studio: Studio):
    await studio.set_up(key=key_of(fault="rate_limited", times=2, retry_after_s=9))
    _, answer = await studio.later()
    for _ in range(3):
        await studio.work_off()
        await advance(studio)
    await studio.work_off()
    assert (await studio.state(answer["id"]))["status"] == "succeeded"
    assert [call.fault for call in studio.asked("predictions")] == ["rate_limited", "rate_limited", None]


@pytest.mark.parametrize("fault", ["cut_mid_stream", "refuse"])
async def test_lost_response_is_searched_for_before_the_host_is_asked_again(studio: Studio, fault: str):
    """With `cut_mid_stream` the host has begun the prediction, with `refuse` it has not."""
    await studio.set_up(key=key_of(fault=fault, times=1))
    _, answer = await studio.later()
    for _ in range(6):
        await studio.work_off()
        await advance(studio)
    await studio.work_off()
    assert (await studio.state(answer["id"]))["status"] == "succeeded"
    charged = sum(call.billed["predictions"] for call in studio.asked("predictions"))
    assert charged == 1


async def test_worker_that_dies_after_the_host_was_asked_pays_once(studio: Studio):
    """Both instants at which a worker can die between the call of the host and its result: as the rows are then."""
    _, answer = await studio.later()
    await studio.work_off()
    async with studio.server.services.database.connection() as conn:
        await conn.execute("update predictions set host_id = null")
    for _ in range(3):
        await advance(studio)
        await studio.work_off()
    assert (await studio.state(answer["id"]))["status"] == "succeeded"
    assert len(studio.asked("predictions")) == 1


async def test_equal_inputs_whose_responses_were_lost_are_not_mixed_up(studio: Studio):
    await studio.set_up(key=key_of(fault="cut_mid_stream", times=2))
    ids = [(await studio.later())[1]["id"] for _ in range(2)]
    for _ in range(6):
        await studio.work_off()
        await advance(studio)
    await studio.work_off()
    assert [(await studio.state(prediction))["status"] for prediction in ids] == ["succeeded"] * 2
    assert len(studio.asked("predictions")) == 2


async def test_prediction_hides_the_fault_of_its_account_in_production(studio: Studio):
    await studio.set_up(key="wrong")
    _, answer = await studio.later()
    async with another_server(studio.server.services.settings, env="production") as production:
        await work_off(production.services)
    state = await studio.state(answer["id"])
    hidden = "a config of this app cannot be used; its operator can read why in the log"
    assert (state["status"], state["error"]) == ("failed", hidden)


async def test_prediction_that_lasts_too_long_is_canceled(studio: Studio):
    _, answer = await studio.later(after_ms=LONG_MS)
    await studio.work_off()
    async with studio.server.services.database.connection() as conn:
        await conn.execute("update predictions set created_at = created_at - interval '2 hours'")
    await advance(studio, 0)
    await studio.work_off()
    assert (await studio.state(answer["id"]))["status"] == "failed"
    assert len(studio.asked("cancel")) == 1
    assert await studio.left() == 2


async def test_awaited_prediction_whose_process_has_died_is_canceled(studio: Studio):
    """The rows are those that a killed process leaves."""
    status, _ = await studio.predict(after_ms=100)
    assert status == 200
    async with studio.server.services.database.transaction() as conn:
        await conn.execute("update predictions set status = 'starting', ended_at = null, output = null")
        await conn.execute(
            "select procrastinate_defer_jobs_v1(array[row('parley', 'follow_prediction', 0, null, null, "
            "(select jsonb_build_object('app_id', app_id, 'uid', uid, 'prediction_id', prediction_id) "
            "from predictions), null)]::procrastinate_job_to_defer_v1[])"
        )
    await studio.work_off()
    assert len(studio.asked("cancel")) == 1
    assert await studio.left() == 2


async def test_model_is_called_by_its_own_endpoint_and_webhooks_of_callers_are_dropped(studio: Studio):
    data = {"input": {"prompt": "Alice"}, "webhook": "https://example.com", "webhook_events_filter": ["start"]}
    body = {"strategy": "faces", "module": "model", "model": "sandbox/official", "data": data}
    _, answer = await studio.call("POST", "/bp/ai/async/modelhub", json=body)
    async with working(studio.server.services):
        await studio.ended(answer["id"])
    [created] = studio.asked("predictions")
    assert created.asked["model"] == "sandbox/official"
    assert created.asked["webhook"] == f"{studio.server.url}{WEBHOOK}"


async def test_repeat_with_the_same_key_is_one_prediction(studio: Studio):
    answers = [(await studio.later(headers={"Idempotency-Key": "1"}))[1] for _ in range(2)]
    assert answers[0] == answers[1]
    await studio.work_off()
    assert len(studio.asked("predictions")) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"module": "image"}, "module must be"),
        ({"module": "model"}, "model is required"),
        ({"module": "model", "model": "../secret"}, "model must be <owner>/<name>"),
        ({"module": "model", "model": "a/b/c"}, "model must be <owner>/<name>"),
        ({"data": {"input": {}}}, "data.version must be a string"),
        ({"data": {"version": 1, "input": {}}}, "data.version must be a string"),
        ({"data": {"version": VERSION, "input": "x"}}, "data.input must be an object"),
        (
            {"data": {"version": VERSION, "input": {"x": "y" * 270_000}}},
            "data must be at most 262144 bytes of JSON",
        ),
        ({"data": []}, "data must be an object"),
        ({"strategy": ""}, "strategy is required"),
    ],
)
async def test_invalid_fields_are_named(studio: Studio, changed: dict[str, Any], message: str):
    body = {"strategy": "faces", "module": "prediction", "data": {"version": VERSION, "input": {}}} | changed
    status, answer = await studio.call("POST", "/bp/ai/async/modelhub", json=body)
    assert status == 400
    assert message in answer["error"]["message"]


async def test_only_the_user_reads_a_prediction(studio: Studio):
    _, answer = await studio.later()
    _, other = await studio.server.login()
    path = f"/bp/ai/async/modelhub/{answer['id']}"
    found = await ask(studio.server, "GET", path, headers={"X-Service-Session-Token": other})
    assert (found[0], found[1]["error"]["error_type"]) == (404, "item_not_found")
    path = f"/bp/server/user/{studio.uid}/ai/async/modelhub/{answer['id']}"
    assert (await ask(studio.server, "GET", path, headers=studio.as_server()))[0] == 200
