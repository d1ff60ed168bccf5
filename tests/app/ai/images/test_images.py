"""Users generate images: each type of task, its result, and how long an answer waits for it."""

import random
from base64 import b64encode

import pytest

from app.work.retention import remove_expired
from storage.jobs.jobs import RemoveExpired
from storage.userdata.document import document
from storage.userdata.exported import ExportedUser
from streams.wire.codec import loads
from tests.app.ai.images.studio import PNG, Studio
from tests.app.callers import ask, token
from tests.waiting import until

META = """account_id bot_hash bot_id created_at ended_at frozen_credit model_version origin_task_id process_mode
quota_frozen started_at task_param task_request task_type"""
CAT = {"prompt": "a cat"}
_OLD_TASK = "update image_tasks set created_at = created_at - interval '31 days' where task_id = $1"
_OLD_FILE = """
update task_files set created_at = created_at - interval '31 days'
where file_key = (select image_key from image_tasks where task_id = $1)
"""
RESULT = """actions credit discord_image_url error_messages image_id image_url message need_retry permanent_url
quota_used result_message_id seed task_progress"""


async def test_image_is_made_from_a_prompt_and_copied_to_this_server(studio: Studio):
    uid = await studio.user()
    begun = await studio.begin(uid, "imagine", {"prompt": "a cat", "aspect_ratio": "16:9", "process_mode": "fast"})
    assert begun.keys() == {"current_count", "current_total_count", "data"}
    data = begun["data"]
    assert data.keys() == {"meta", "process_time", "retry_count", "status", "task_id", "task_result"}
    assert [*data["meta"]] == META.split()
    assert [*data["task_result"]] == RESULT.split()
    assert (data["status"], data["meta"]["task_type"]) == ("pending", "imagine")
    assert data["task_result"]["image_url"] == ""

    ended = (await studio.ended(uid, data["task_id"]))["data"]
    result = ended["task_result"]
    assert (ended["status"], result["task_progress"], ended["meta"]["process_mode"]) == ("finished", 100, "fast")
    assert result["image_url"].startswith(f"{studio.server.url}/files/images/default/{uid}/")
    assert all(result[name] for name in ("discord_image_url", "permanent_url"))
    assert "upscale1" in result["actions"]
    content_type, content = await studio.download(result["image_url"])
    assert (content_type, content[:8]) == ("image/png", PNG)
    [asked] = studio.asked()
    assert {name: asked[name] for name in ("prompt", "aspect_ratio", "process_mode")} == {
        "prompt": "a cat", "aspect_ratio": "16:9", "process_mode": "fast",
    }  # fmt: skip


async def test_answers_of_gateways_differ_in_what_a_task_does_not_need(studio: Studio):
    uid = await studio.user()
    for form in ("wrapped", "nulls", "garbled"):
        task = await studio.make(uid, "imagine", {"prompt": f"a cat [form={form}]"})
        assert (task["status"], bool(task["task_result"]["image_url"])) == ("finished", True)


DERIVED = {
    "reroll": ({}, {}),
    "upscale": ({"index": 2}, {"index": "2"}),
    "variation": ({"index": "high_variation", "prompt": "a dog"}, {"index": "high_variation", "prompt": "a dog"}),
    "pan": ({"direction": "left"}, {"direction": "left"}),
    "outpaint": ({"zoom_ratio": 1.5}, {"zoom_ratio": "1.5"}),
    "seed": ({}, {}),
}


@pytest.mark.parametrize("kind", DERIVED)
async def test_task_is_derived_from_another(studio: Studio, kind: str):
    data, sent = DERIVED[kind]
    uid = await studio.user()
    origin = (await studio.make(uid, "imagine", {"prompt": "a cat"}))["task_id"]
    ended = await studio.make(uid, kind, {"origin_task_id": origin, **data})
    first, asked = studio.asked()
    assert (ended["status"], ended["meta"]["origin_task_id"], ended["meta"]["task_type"]) == (
        "finished",
        origin,
        kind,
    )
    assert asked["task_id" if kind == "seed" else "origin_task_id"] == first["task_id"] or kind == "seed"
    assert asked.items() >= sent.items()
    if kind == "seed":
        assert ended["task_result"]["seed"].isdecimal()
        assert ended["task_result"]["image_url"] == ""
    else:
        assert (await studio.download(ended["task_result"]["image_url"]))[1][:8] == PNG


async def test_part_of_an_image_is_drawn_anew_within_a_mask(studio: Studio):
    uid = await studio.user()
    origin = await studio.make(uid, "imagine", {"prompt": "a cat"})
    mask = origin["task_result"]["image_url"]
    for given in (mask, mask.partition("?")[0], mask.partition("/files/")[2].partition("?")[0]):
        data = {"origin_task_id": origin["task_id"], "mask": given, "prompt": "a hat"}
        assert (await studio.make(uid, "inpaint", data))["status"] == "finished"
    inline = studio.asked()[-1]["mask"]
    assert inline.startswith("iVBORw0KGgo")
    data = {"origin_task_id": origin["task_id"], "mask": inline, "prompt": "a hat"}
    assert (await studio.make(uid, "inpaint", data))["status"] == "finished"


async def test_large_mask_reaches_the_host_unchanged(studio: Studio):
    uid = await studio.user()
    origin = await studio.make(uid, "imagine", {"prompt": "a cat"})
    mask = b64encode(PNG + random.Random(1).randbytes(600_000)).decode()  # noqa: S311 - no secret
    for given in (mask, f"data:image/png;base64,{mask}"):
        data = {"origin_task_id": origin["task_id"], "mask": given, "prompt": "a hat"}
        assert (await studio.make(uid, "inpaint", data))["status"] == "finished"
        assert studio.asked()[-1]["mask"] == mask


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (b64encode(b"<svg>" + bytes(400_000)).decode(), "must be an image: PNG, JPEG, WebP or GIF"),
        (b64encode(PNG + bytes(300_002)).decode() * 2, "must be the URL of an image, or base64"),
        (b64encode(PNG + bytes(400_003)).decode() + "!", "must be the URL of an image, or base64"),
    ],
    ids=["no image", "padding in the middle", "no base64"],
)
async def test_invalid_mask_is_refused(studio: Studio, mask: str, message: str):
    uid = await studio.user()
    origin = await studio.make(uid, "imagine", {"prompt": "a cat"})
    data = {"origin_task_id": origin["task_id"], "mask": mask, "prompt": "a hat"}
    status, reply = await studio.ask(uid, "inpaint", data)
    assert (status, reply["error"]["message"]) == (400, f"invalid_parameter: data.mask {message}")


async def test_images_are_described_and_blended(studio: Studio):
    uid = await studio.user()
    urls = [(await studio.make(uid, "imagine", {"prompt": "a cat"}))["task_result"]["image_url"] for _ in range(2)]
    described = await studio.make(uid, "describe", {"image_url": urls[0]})
    assert described["task_result"]["message"].count("a picture") == 4
    blended = await studio.make(uid, "blend", {"image_urls": urls, "dimension": "square"})
    assert blended["task_result"]["image_url"]
    asked = studio.asked()[-1]
    assert (len(asked["image_urls"]), asked["dimension"]) == (2, "square")
    for url in asked["image_urls"]:
        assert (await studio.download(url))[1][:8] == PNG


async def test_image_of_the_user_is_put_before_the_prompt(studio: Studio):
    uid = await studio.user()
    url = (await studio.make(uid, "imagine", {"prompt": "a cat"}))["task_result"]["image_url"]
    path = "/files/" + url.partition("/files/")[2].partition("?")[0]
    await studio.begin(uid, "imagine", {"prompt": "a dog"}, image_url=path)
    link, _, prompt = studio.asked()[-1]["prompt"].partition(" ")
    assert prompt == "a dog"
    assert (await studio.download(link))[1][:8] == PNG


async def test_ratio_in_the_prompt_replaces_the_field(studio: Studio):
    uid = await studio.user()
    await studio.begin(uid, "imagine", {"prompt": "a cat --ar 3:2", "aspect_ratio": "16:9"})
    assert "aspect_ratio" not in studio.asked()[-1]


async def test_strategy_has_a_default_mode(studio: Studio):
    await studio.configure(process_mode="turbo")
    uid = await studio.user()
    await studio.begin(uid, "imagine", {"prompt": "a cat"})
    await studio.begin(uid, "imagine", {"prompt": "a cat", "process_mode": "relax"})
    assert [asked["process_mode"] for asked in studio.asked()] == ["turbo", "relax"]


async def test_progress_is_seen_while_the_host_works(studio: Studio):
    uid = await studio.user()
    task_id = (await studio.begin(uid, "imagine", {"prompt": "a cat [polls=1]"}))["data"]["task_id"]
    await studio.sandbox.bill.wait(lambda call: call.stage == "fetch")

    async def progress() -> int:
        return (await studio.read(uid, task_id))["data"]["task_result"]["task_progress"]

    await until(progress)
    read = (await studio.read(uid, task_id))["data"]
    assert (read["status"], read["task_result"]["task_progress"]) == ("processing", 50)
    assert (await studio.ended(uid, task_id))["data"]["status"] == "finished"


async def test_answer_waits_as_long_as_the_client_prefers(studio: Studio):
    uid = await studio.user()
    waited = await studio.begin(uid, "imagine", {"prompt": "a cat"}, headers={"Prefer": "wait=60"})
    assert waited["data"]["status"] == "finished"
    late = await studio.begin(
        uid, "imagine", {"prompt": "a cat [polls=1000]"}, headers={"Prefer": "respond-async, WAIT=1; a=b"}
    )
    assert late["data"]["status"] in {"pending", "processing"}
    ignored = await studio.begin(uid, "imagine", {"prompt": "a cat"}, headers={"Prefer": "wait=soon"})
    assert ignored["data"]["status"] == "pending"


async def test_repeated_request_makes_no_second_image(studio: Studio):
    uid = await studio.user()
    replies = [
        await studio.begin(uid, "imagine", {"prompt": "a cat"}, headers={"Idempotency-Key": "1"}) for _ in range(2)
    ]
    assert replies[0] == replies[1]
    assert len(studio.asked()) == 1


async def test_app_server_makes_and_reads_images_of_a_user(studio: Studio):
    uid = await studio.user()
    path = f"/bp/server/user/{uid}/ai/imagine"
    json = {"strategy": "pictures", "type": "imagine", "data": {"prompt": "a cat"}}
    status, reply = await ask(studio.server, "POST", path, json=json, headers=token(scope="ai"))
    assert status == 200, reply
    task_id = reply["data"]["task_id"]
    await studio.ended(uid, task_id)
    status, read = await ask(studio.server, "GET", f"{path}/{task_id}", headers=token(scope="ai"))
    assert (status, read["data"]["status"]) == (200, "finished")


async def test_uploaded_image_is_described(studio: Studio):
    uid = await studio.user()
    made = (await studio.make(uid, "imagine", CAT))["task_result"]["image_url"]
    _, content = await studio.download(made)
    path, headers = "/bp/ai/upload", studio.sessions[uid]
    status, uploaded = await ask(studio.server, "PUT", path, data=content, headers=headers)
    assert status == 200, uploaded
    assert (await studio.make(uid, "describe", {"image_url": uploaded["url"]}))["status"] == "finished"


async def test_old_tasks_and_their_images_are_deleted(studio: Studio):
    uid = await studio.user()
    old, new = [await studio.make(uid, "imagine", CAT) for _ in range(2)]
    await studio.run(_OLD_FILE, old["task_id"])
    await studio.run(_OLD_TASK, old["task_id"])
    await remove_expired(studio.server.services, RemoveExpired())
    rows = await studio.run("select task_id from image_tasks where uid = $1", uid)
    assert [row["task_id"] for row in rows] == [new["task_id"]]

    async def is_gone() -> bool:
        async with studio.server.http.get(old["task_result"]["image_url"]) as response:
            return response.status == 404

    await until(is_gone)
    assert (await studio.download(new["task_result"]["image_url"]))[1][:8] == PNG


async def test_tasks_are_part_of_the_export_and_are_erased_with_the_user(studio: Studio):
    uid = await studio.user()
    image_url = (await studio.make(uid, "imagine", CAT))["task_result"]["image_url"]
    services = studio.server.services
    user = ExportedUser("default", uid, services.database, services.objects)
    [exported] = loads(b"".join([piece async for piece in await document(user)]))["image_tasks"]
    assert (exported["type"], exported["request"], exported["status"]) == ("imagine", CAT, "finished")
    for step in ("", "/confirm"):
        path = f"/bp/user/me/deactivate{step}"
        assert (await ask(studio.server, "POST", path, headers=studio.sessions[uid]))[0] == 200
    assert await studio.run("select 1 from image_tasks where uid = $1", uid) == []

    async def is_gone() -> bool:
        async with studio.server.http.get(image_url) as response:
            return response.status == 404

    await until(is_gone)


async def test_files_of_others_are_refused(studio: Studio):
    uid, other = await studio.user(), await studio.user()
    url = (await studio.make(other, "imagine", {"prompt": "a cat"}))["task_result"]["image_url"]
    wrong = [
        url,
        "https://example.com/files/a.png",
        "http://[",
        "images/x.png",
        url.replace("/images/", "/images/../images/"),
    ]
    for image_url in wrong:
        status, reply = await studio.ask(uid, "describe", {"image_url": image_url})
        message = "data.image_url must be the URL of an image that is stored for the user"
        assert (status, reply["error"]["message"]) == (400, f"invalid_parameter: {message}")
    own = url.replace(other, uid)
    status, reply = await studio.ask(uid, "describe", {"image_url": own})
    assert reply["error"]["message"] == "invalid_parameter: data.image_url names an image that does not exist"


async def test_origin_must_be_a_task_of_the_user_that_has_an_image(studio: Studio):
    uid, other = await studio.user(), await studio.user()
    theirs = (await studio.make(other, "imagine", {"prompt": "a cat"}))["task_id"]
    for origin in (theirs, "0" * 32, "no id"):
        status, reply = await studio.ask(uid, "reroll", {"origin_task_id": origin})
        assert (status, reply["error"]["error_type"]) == (404, "item_not_found")
    unfinished = (await studio.begin(uid, "imagine", {"prompt": "a cat [polls=1000]"}))["data"]["task_id"]
    status, reply = await studio.ask(uid, "reroll", {"origin_task_id": unfinished})
    assert (status, reply["error"]["error_type"]) == (400, "invalid_parameter")
    assert (await studio.ask(other, "reroll", {"origin_task_id": theirs}))[0] == 200


RATIO = "data.aspect_ratio must be a ratio of two numbers, such as 16:9"
DIRECTION = "data.direction must be one of 'up', 'down', 'left' or 'right'"
TYPE = (
    "type must be one of 'imagine', 'reroll', 'upscale', 'variation', 'inpaint', 'outpaint', 'pan', 'describe',"
    " 'blend' or 'seed'"
)
WRONG = [
    ("imagine", {}, "data.prompt is required"),
    ("imagine", {"prompt": " "}, "data.prompt is required"),
    ("imagine", {"prompt": "x", "aspect_ratio": "wide"}, RATIO),
    ("upscale", {"origin_task_id": "x"}, "data.index is required"),
    ("pan", {"origin_task_id": "x", "direction": "north"}, DIRECTION),
    ("outpaint", {"origin_task_id": "x", "zoom_ratio": 3}, "data.zoom_ratio must be from 1 to 2"),
    ("blend", {"image_urls": ["a"]}, "data.image_urls must have at least 2 entries"),
    ("describe", {}, "data.image_url is required"),
    ("draw", {}, TYPE),
]


@pytest.mark.parametrize(("kind", "data", "message"), WRONG)
async def test_invalid_data_is_named(studio: Studio, kind: str, data: dict, message: str):
    uid = await studio.user()
    status, reply = await studio.ask(uid, kind, data)
    assert (status, reply["error"]["message"]) == (400, f"invalid_parameter: {message}")


async def test_only_masks_make_large_bodies(studio: Studio):
    uid = await studio.user()
    status, reply = await studio.ask(uid, "imagine", {"prompt": "a cat", "more": "x" * 330_000})
    assert (status, reply["error"]["message"]) == (413, "invalid_parameter: body exceeds 327680 bytes")
    data = {"origin_task_id": "x", "mask": "x" * 330_000, "prompt": "a hat"}
    assert (await studio.ask(uid, "inpaint", data))[0] == 404
