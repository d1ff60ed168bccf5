"""Image tasks end, whatever their host does, and what failed tasks have used of a quota is given back."""

import asyncio
import random
from typing import Any

import pytest

from app.work.worker import run_jobs
from storage.tasks import image_tasks
from streams.tasks import background
from tests.app.ai.images.studio import Studio
from tests.waiting import until
from vendors.sandbox.faults import key_of

QUOTA = {"asset": "coins", "amount": 2, "free_per_day": 3}
CAT = {"prompt": "a cat"}


def left(reply: dict[str, Any]) -> tuple[int, int]:
    return reply["current_count"], reply["current_total_count"]


async def test_each_task_uses_units_of_the_quota(studio: Studio):
    await studio.configure(quota=QUOTA)
    uid = await studio.user()
    await studio.grant(uid, 2)
    assert [left(await studio.begin(uid, "imagine", CAT)) for _ in range(2)] == [(3, 5), (1, 5)]
    status, reply = await studio.ask(uid, "imagine", CAT)
    assert (status, reply["error"]["error_type"]) == (429, "ai_free_limit")
    assert len(studio.asked()) == 2


@pytest.mark.parametrize("outcome", ["[fail=no picture]", "[refuse=banned prompt: cat]"])
async def test_failed_task_is_no_error_and_its_quota_is_given_back(studio: Studio, outcome: str):
    await studio.configure(quota=QUOTA)
    uid = await studio.user()
    begun = await studio.begin(uid, "imagine", {"prompt": f"a cat {outcome}"})
    ended = await studio.ended(uid, begun["data"]["task_id"])
    message = outcome.partition("=")[2].rstrip("]")
    result = ended["data"]["task_result"]
    assert (ended["data"]["status"], result["message"], result["error_messages"]) == ("failed", message, [message])
    assert left(ended) == (3, 3)


FAULTS = {
    "unauthorized": (422, "config_invalid"),
    "out_of_quota": (422, "config_invalid"),
    "rate_limited": (502, "backend unavailable"),
    "server_error": (502, "backend unavailable"),
    "unavailable": (502, "backend unavailable"),
    "refuse": (502, "backend unavailable"),
    "wrong_content_type": (502, "backend unavailable"),
    "redirect": (502, "backend unavailable"),
    "cut_mid_stream": (502, "backend unavailable"),
    "malformed_frame": (502, "backend unavailable"),
    "empty_answer": (502, "backend unavailable"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_task_that_its_host_does_not_accept_leaves_nothing(studio: Studio, fault: str):
    await studio.configure(key=key_of(fault=fault, retry_after_s=0.01), quota=QUOTA)
    uid = await studio.user()
    status, reply = await studio.ask(uid, "imagine", CAT, headers={"Idempotency-Key": "1"})
    assert (status, reply["error"]["error_type"]) == FAULTS[fault]
    assert await studio.run("select 1 from image_tasks where uid = $1", uid) == []
    await studio.configure(quota=QUOTA)
    again = await studio.begin(uid, "imagine", CAT, headers={"Idempotency-Key": "1"})
    assert left(again) == (1, 3)
    assert len([call for call in studio.sandbox.bill.since(0) if call.stage == "create"]) == 2


async def test_account_that_cannot_pay_is_a_fault_of_the_config(studio: Studio):
    uid = await studio.user()
    status, reply = await studio.ask(uid, "imagine", {"prompt": "a cat [refuse=Insufficient token]"})
    assert (status, reply["error"]["error_type"]) == (422, "config_invalid")


async def test_host_that_refuses_a_field_is_quoted(studio: Studio):
    uid = await studio.user()
    await studio.configure(path="/midjourney/elsewhere")
    status, reply = await studio.ask(uid, "imagine", CAT)
    assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")


@pytest.mark.parametrize("fault", ["server_error", "refuse", "malformed_frame", "cut_mid_stream", "unauthorized"])
async def test_task_is_read_again_after_a_fault_of_the_host(studio: Studio, fault: str):
    await studio.faulty(fault=fault, skip=1, times=4)
    uid = await studio.user()
    assert (await studio.make(uid, "imagine", CAT))["status"] == "finished"
    assert len(studio.asked()) == 1


BAD_FILES = {
    "text": "sent a file that is no image",
    "missing": "answered 404",
    "cut": "broke off its answer",
    "large": "sent a file of more than 33554432 bytes",
    "http://127.0.0.1:9/a.png": "was not reached: its host has no public address",
    "file:///etc/passwd": "has a base URL that is not an HTTP URL",
}


@pytest.mark.parametrize("file", BAD_FILES)
async def test_task_whose_image_cannot_be_copied_fails_in_the_end(studio: Studio, file: str):
    await studio.configure(quota=QUOTA)
    uid = await studio.user()
    task_id = (await studio.begin(uid, "imagine", {"prompt": f"a cat [file={file}]"}))["data"]["task_id"]
    await studio.sandbox.bill.wait(lambda call: call.stage == "fetch" and call.ended is not None)
    await studio.run("update image_tasks set lost_at = '2020-01-01'")
    ended = await studio.ended(uid, task_id)
    message = f"the image was not read: image_host {BAD_FILES[file]}"
    assert (ended["data"]["status"], ended["data"]["task_result"]["message"]) == ("failed", message)
    assert (ended["data"]["task_result"]["image_url"], left(ended)) == ("", (3, 3))


async def test_task_that_its_host_never_ends_is_lost(studio: Studio):
    await studio.configure(quota=QUOTA)
    uid = await studio.user()
    task_id = (await studio.begin(uid, "imagine", {"prompt": "a cat [polls=100000]"}))["data"]["task_id"]
    await studio.run("update image_tasks set lost_at = '2020-01-01'")
    ended = await studio.ended(uid, task_id)
    message = "the host did not finish the task in time"
    assert (ended["data"]["task_result"]["message"], left(ended)) == (message, (3, 3))


async def test_task_that_has_ended_is_not_ended_again(studio: Studio):
    await studio.configure(quota=QUOTA)
    uid = await studio.user()
    task_id = (await studio.make(uid, "imagine", {"prompt": "a cat [fail=no picture]"}))["task_id"]
    services = studio.server.services
    async with services.database.transaction() as conn:
        task = await image_tasks.find(conn, "default", uid, task_id=task_id)
        assert task is not None
        now = services.clock.now("default")
        late = await image_tasks.end_task(conn, task, status="finished", host_task={}, image_key=None, now=now)
    assert (late, (await studio.read(uid, task_id))["data"]["status"]) == (False, "failed")


async def test_webhook_ends_a_task_without_polling(idle_studio: Studio):
    studio = idle_studio
    uid = await studio.user()
    begun = await studio.begin(uid, "imagine", {"prompt": "a cat [polls=3] [webhook=duplicate]"})
    await until(lambda: len(studio.sandbox.sandbox.deliveries.log) == 2)
    assert {delivery.status for delivery in studio.sandbox.sandbox.deliveries.log} == {200}
    await studio.run("delete from procrastinate_jobs where task_name = 'poll_image_task'")
    async with background(run_jobs(studio.server.services, scheduled=False, poll_s=0.05)):
        ended = await studio.ended(uid, begun["data"]["task_id"])
    assert ended["data"]["status"] == "finished"
    assert len(await studio.run("select 1 from webhooks where source = 'image_host'")) == 1


@pytest.mark.parametrize("secret", ["", "x", "{task}", "{task}.0", "0" * 32 + "." + "0" * 64])
async def test_webhook_without_the_proof_is_refused(studio: Studio, secret: str):
    uid = await studio.user()
    task_id = (await studio.begin(uid, "imagine", {"prompt": "a cat [polls=1000]"}))["data"]["task_id"]
    url = f"{studio.server.url}/bp/webhook/image_host/default/{studio.account}"
    headers = {"X-Webhook-Secret": secret.replace("{task}", task_id)}
    async with studio.server.http.post(url, json={"task_id": "1"}, headers=headers) as response:
        assert response.status == 400


async def test_task_whose_answer_was_lost_is_found_by_its_webhook(studio: Studio):
    await studio.configure(key=key_of(fault="hang_before_output", times=1), quota=QUOTA)
    uid = await studio.user()
    asking = studio.ask(uid, "imagine", {"prompt": "a cat [webhook=on]"})
    async with background(asking) as asked:

        async def ended() -> bool:
            await studio.hurry()
            return bool(await studio.run("select 1 from image_tasks where status = 'finished'"))

        await until(ended)
        await studio.sandbox.reset()
        status, reply = await asked
    assert (status, reply["data"]["status"], left(reply)) == (200, "finished", (1, 3))


async def test_task_whose_process_died_before_it_was_submitted_fails(studio: Studio):
    await studio.configure(key=key_of(fault="hang_before_headers"), quota=QUOTA)
    uid = await studio.user()
    async with background(studio.ask(uid, "imagine", CAT)) as asked:
        await studio.sandbox.bill.wait(lambda call: call.stage == "create")
        await studio.run("update image_tasks set created_at = created_at - interval '1 hour'")

        async def ended() -> list[Any]:
            await studio.hurry()
            return await studio.run("select task_id from image_tasks where status = 'failed'")

        await until(ended)
        [row] = await ended()
        assert left(await studio.read(uid, row["task_id"])) == (3, 3)
        await studio.sandbox.reset()
        status, reply = await asked
    assert (status, reply["data"]["status"], left(reply)) == (200, "failed", (3, 3))


async def test_limits_of_a_user(studio: Studio):
    await studio.configure(at_once=2, per_minute=4)
    uid, other = await studio.user(), await studio.user()
    begun = [await studio.begin(uid, "imagine", {"prompt": "a cat [polls=100000]"}) for _ in range(2)]
    status, reply = await studio.ask(uid, "imagine", CAT)
    assert (status, reply["error"]["message"]) == (429, "api_rate_limit: 2 image tasks have not ended")
    await studio.run("update image_tasks set lost_at = '2020-01-01'")
    await studio.ended(uid, begun[0]["data"]["task_id"])
    await studio.begin(uid, "imagine", CAT)
    status, reply = await studio.ask(uid, "imagine", CAT)
    assert (status, reply["error"]["message"]) == (429, "api_rate_limit: more than 4 calls in 60 s")
    await studio.begin(other, "imagine", CAT)
    await studio.put("limits", "default", {"rates": {"image": {"count": 1, "per_s": 3600}}})
    assert (await studio.ask(other, "imagine", CAT))[0] == 429


OUTCOMES = [
    "",
    "[polls=2]",
    "[fail=no]",
    "[refuse=banned]",
    "[file=text]",
    "[webhook=on]",
    "[polls=1] [webhook=lost]",
]
RANDOM_FAULTS = ["server_error", "unavailable", "refuse", "cut_mid_stream", "malformed_frame", "error_inside_200"]


@pytest.mark.parametrize("seed", range(3))
async def test_every_task_of_a_random_schedule_ends_and_the_quota_equals_a_model(idle_studio: Studio, seed: int):
    studio, rng = idle_studio, random.Random(seed)  # noqa: S311
    uid = await studio.user()
    await studio.grant(uid, 100)
    quota = {"asset": "coins", "amount": 3, "free_per_day": 4}
    key = key_of(fault=rng.choice(RANDOM_FAULTS), rate=0.3, seed=seed, retry_after_s=0.01)
    await studio.configure(key=key, quota=quota)
    services, task_ids, requests = studio.server.services, [], 12

    async def begin() -> None:
        for _ in range(requests):
            status, reply = await studio.ask(uid, "imagine", {"prompt": f"a cat {rng.choice(OUTCOMES)}"})
            assert status in {200, 502}, reply
            if status == 200:
                task_ids.append(reply["data"]["task_id"])

    async def states() -> list[str]:
        await studio.hurry()
        await studio.run("update image_tasks set lost_at = '2020-01-01' where request ->> 'prompt' like '%text%'")
        return [row["status"] for row in await studio.run("select status from image_tasks where uid = $1", uid)]

    async with background(begin()) as begun:
        for _ in range(4):  # Workers that are interrupted in the middle of their jobs.
            async with background(run_jobs(services, scheduled=False, poll_s=0.05, stop_s=0)):
                await studio.hurry()
                await studio.sandbox.bill.wait(lambda call: call.stage == "fetch")
        await begun
    async with background(run_jobs(services, scheduled=False, poll_s=0.05)):

        async def all_ended() -> bool:
            return {*await states()} <= {"finished", "failed"}

        await until(all_ended)
    assert len(await states()) == len(task_ids)
    finished = (await states()).count("finished")
    reply = await studio.read(uid, task_ids[0])
    assert left(reply) == (104 - 3 * finished, 104)
    assert len([call for call in studio.sandbox.bill.since(0) if call.stage == "create"]) == requests


async def test_two_requests_at_once_do_not_exceed_what_is_left(studio: Studio):
    await studio.configure(quota=QUOTA, at_once=3)
    uid = await studio.user()
    asked = await asyncio.gather(*(studio.ask(uid, "imagine", CAT) for _ in range(4)))
    assert sorted(status for status, _ in asked) == [200, 429, 429, 429]
