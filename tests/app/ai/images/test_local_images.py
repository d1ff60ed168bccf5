"""The drawing engine of this machine, as the strategy `local` of a development server."""

from base64 import b64encode
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.app.ai.images.studio import IMAGINE
from tests.app.callers import ask, working
from tests.running.servers import Server
from tests.waiting import until

_DUE = "update procrastinate_jobs set scheduled_at = null where status = 'todo'"


class Atelier:
    def __init__(self, server: Server, session: str) -> None:
        self.server = server
        self.headers = {"X-Service-Session-Token": session}

    async def make(self, type: str, data: Any, **body: Any) -> dict[str, Any]:  # noqa: A002
        json = {"strategy": "local", "type": type, "data": data, **body}
        status, reply = await ask(self.server, "POST", IMAGINE, json=json, headers=self.headers)
        assert status == 200, reply
        path = f"{IMAGINE}/{reply['data']['task_id']}"
        found: dict[str, Any] = {}

        async def ended() -> bool:
            async with self.server.services.database.connection() as conn:
                await conn.execute(_DUE)
            found.update((await ask(self.server, "GET", path, headers=self.headers))[1]["data"])
            return found["status"] in {"finished", "failed"}

        await until(ended, every_s=0.1)
        return found

    async def image(self, task: dict[str, Any]) -> Image.Image:
        assert task["status"] == "finished", task
        async with self.server.http.get(task["task_result"]["image_url"]) as response:
            assert response.content_type == "image/png"
            return Image.open(BytesIO(await response.read())).convert("RGB")


@pytest.fixture
async def atelier(server: Server, local_vendors: str) -> AsyncIterator[Atelier]:
    _, session = await server.login()
    async with working(server.services):
        yield Atelier(server, session)


def difference(one: Image.Image, other: Image.Image) -> float:
    """The mean difference of two images, which are brought to the same size, from 0 to 255."""
    small = [np.asarray(image.resize((64, 64)), float) for image in (one, other)]
    return float(np.abs(small[0] - small[1]).mean())


async def test_image_is_drawn_from_its_prompt_and_described(atelier: Atelier):
    grid = await atelier.make("imagine", {"prompt": "a boat at sunset", "aspect_ratio": "3:2"})
    shown = await atelier.image(grid)
    assert abs(shown.width / shown.height - 1.5) < 0.01
    described = await atelier.make("describe", {"image_url": grid["task_result"]["image_url"]})
    assert described["task_result"]["message"].count("\ufe0f\u20e3") == 4


@pytest.mark.soak
async def test_all_types_do_something_visible(atelier: Atelier):
    grid = await atelier.make("imagine", {"prompt": "a boat at sunset", "aspect_ratio": "3:2"})
    again = await atelier.make("imagine", {"prompt": "a boat at sunset", "aspect_ratio": "3:2"})
    shown = await atelier.image(grid)
    assert abs(shown.width / shown.height - 1.5) < 0.01
    assert shown.tobytes() == (await atelier.image(again)).tobytes()

    of_grid = {"origin_task_id": grid["task_id"]}
    reroll = await atelier.image(await atelier.make("reroll", of_grid))
    assert difference(reroll, shown) > 5
    upscaled = await atelier.make("upscale", {**of_grid, "index": 2})
    single = await atelier.image(upscaled)
    quarter = shown.crop((shown.width // 2, 0, shown.width, shown.height // 2))
    assert difference(single, quarter) < 5
    varied = await atelier.image(await atelier.make("variation", {**of_grid, "index": 2}))
    assert difference(varied, shown) > 5

    of_single = {"origin_task_id": upscaled["task_id"]}
    larger = await atelier.image(await atelier.make("upscale", {**of_single, "index": "2x"}))
    assert larger.size == (2 * single.width, 2 * single.height)
    panned = await atelier.image(await atelier.make("pan", {**of_single, "direction": "left"}))
    kept = panned.crop((panned.width - single.width, 0, panned.width, panned.height))
    assert (panned.height, abs(panned.width - 1.5 * single.width) < 2) == (single.height, True)
    assert difference(kept, single) < 6
    zoomed = await atelier.image(await atelier.make("outpaint", {**of_single, "zoom_ratio": 2}))
    width, height = zoomed.size
    assert difference(zoomed.crop((width // 4, height // 4, width * 3 // 4, height * 3 // 4)), single) < 8
    square = await atelier.image(await atelier.make("outpaint", {**of_single, "zoom_ratio": "1"}))
    assert square.width == square.height

    mask = Image.new("L", single.size)
    mask.paste(255, (0, 0, single.width // 2, single.height))
    file = BytesIO()
    mask.save(file, "PNG")
    drawn = {**of_single, "mask": b64encode(file.getvalue()).decode(), "prompt": "snow --seed 5"}
    inpainted = await atelier.image(await atelier.make("inpaint", drawn))
    halves = [(0, 0, single.width // 2, single.height), (single.width // 2 + 8, 0, *single.size)]
    changed, same = (difference(inpainted.crop(half), single.crop(half)) for half in halves)
    assert (changed > 5, same < 3) == (True, True)

    url, other = upscaled["task_result"]["image_url"], grid["task_result"]["image_url"]
    described = await atelier.make("describe", {"image_url": url})
    assert described["task_result"]["message"].count("\ufe0f\u20e3") == 4
    blended = await atelier.image(
        await atelier.make("blend", {"image_urls": [url, other], "dimension": "portrait"})
    )
    assert abs(blended.width / blended.height - 2 / 3) < 0.01
    with_image = await atelier.make("imagine", {"prompt": "a boat at sunset"}, image_url=url)
    without = await atelier.make("imagine", {"prompt": "a boat at sunset"})
    assert difference(await atelier.image(with_image), await atelier.image(without)) > 3
    seed = await atelier.make("seed", of_grid)
    assert seed["task_result"]["seed"].isdecimal()


async def test_what_cannot_be_drawn_is_a_failed_task(atelier: Atelier):
    grid = await atelier.make("imagine", {"prompt": "a fox"})
    panned = await atelier.make("pan", {"origin_task_id": grid["task_id"], "direction": "up"})
    message = "the task has four pictures: upscale one of them first"
    assert (panned["status"], panned["task_result"]["message"]) == ("failed", message)
