"""The tasks of the drawing engine, and what each type of them makes."""

import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any
from uuid import uuid4

from vendors.local.pictures import pictures
from vendors.local.pictures.describing import described
from vendors.local.pictures.pictures import Blend, Grid, Masked, Picture, parts_of

MODEL = "patterns"
_PIXELS = 1024 * 1024
_MAX_WIDTH = 4096
_WORK_S = 1.5
"""How long a task counts as processed, so that clients see its progress."""
_GRID_ACTIONS = ["reroll", *(f"{name}{index}" for name in ("upscale", "variation") for index in range(1, 5))]
_SINGLE_ACTIONS = (
    "upscale_2x upscale_4x high_variation low_variation inpaint outpaint_1.5x outpaint_2x outpaint_custom"
    " pan_left pan_right pan_up pan_down"
)
_SCALES = {"2x": 2, "subtle": 2, "creative": 2, "light": 2, "beta": 2, "4x": 4}

Read = Callable[[str], Awaitable[bytes]]
"""Returns the content of a URL."""


class Refused(Exception):
    """A task that cannot be made. The message is for its user."""


@dataclass(slots=True)
class Task:
    type: str
    body: Mapping[str, Any]
    prompt: str = ""
    picture: Picture | None = None
    width: int = 0
    """Width of the picture in pixels."""
    seed: int = 0
    message: str = ""
    id: str = field(default_factory=lambda: str(uuid4()))
    created: float = field(default_factory=time.time)

    @property
    def progress(self) -> int:
        return min(100, int(100 * (time.time() - self.created) / _WORK_S))

    def as_json(self, image_url: str) -> dict[str, Any]:
        progress, began, body = self.progress, int(self.created), self.body
        done = progress == 100
        url = image_url if done and self.picture is not None else ""
        return {
            "task_id": self.id,
            "status": "finished" if done else "processing",
            "process_time": round(_WORK_S) if done else 0,
            "retry_count": 0,
            "meta": {
                "account_id": "local",
                "task_type": self.type,
                "origin_task_id": body.get("origin_task_id", ""),
                "bot_hash": "",
                "bot_id": 0,
                "model_version": MODEL,
                "process_mode": body.get("process_mode", ""),
                "quota_frozen": 0,
                "frozen_credit": 0,
                "created_at": began,
                "started_at": began,
                "ended_at": int(self.created + _WORK_S) if done else 0,
                "task_param": {
                    name: str(body.get(name, ""))
                    for name in ("prompt", "index", "zoom_ratio", "aspect_ratio", "direction")
                },
                "task_request": {"task_id": ""},
            },
            "task_result": {
                "image_url": url,
                "discord_image_url": "",
                "permanent_url": "",
                "task_progress": progress,
                "image_id": self.id if url else "",
                "seed": str(self.seed) if done and self.type == "seed" else "",
                "message": self.message if done else "",
                "error_messages": [],
                "need_retry": False,
                "quota_used": 0,
                "credit": 0,
                "result_message_id": "",
                "actions": self._actions() if url else [],
            },
        }

    def _actions(self) -> list[str]:
        return _GRID_ACTIONS if isinstance(self.picture, Grid) else _SINGLE_ACTIONS.split()


class Painter:
    """Makes tasks. Pictures are repeatable: their seed is stated in the prompt or derived from it."""

    def __init__(self, read: Read) -> None:
        self._read = read

    async def paint(self, kind: str, body: Mapping[str, Any], origin: Task | None) -> Task:
        """Return a new task. Raises `Refused`, and `NoImage` for a file that is not an image."""
        task = Task(kind, body, prompt=str(body.get("prompt") or (origin.prompt if origin else "")))
        task.seed = pictures.seed_in(task.prompt, task.prompt) if origin is None else origin.seed
        match kind:
            case "imagine":
                task.picture = await self._imagined(task)
            case "blend":
                task.picture = await self._blended(body)
            case "describe":
                texts = described(await self._read(str(body["image_url"])))
                task.message = "\n\n".join(f"{n}\ufe0f\u20e3 {text}" for n, text in enumerate(texts, 1))
            case _:
                if origin is None or origin.picture is None:
                    raise Refused("derive from origin task: parent task is outdated")
                _derive(task, origin, origin.picture)
        if task.picture is not None and not task.width:
            task.width = _usual_width(task.picture)
        return task

    async def _imagined(self, task: Task) -> Picture:
        words, under = task.prompt.split(), None
        while words and words[0].startswith(("http://", "https://")):
            under = pictures.photo(await self._read(words.pop(0)))
        task.prompt = " ".join(words)
        task.seed = pictures.seed_in(task.prompt, task.prompt)
        ratio = pictures.ratio_in(task.prompt, str(task.body.get("aspect_ratio") or ""))
        return pictures.grid_of(task.prompt, task.seed, ratio=ratio, under=under)

    async def _blended(self, body: Mapping[str, Any]) -> Picture:
        photos = tuple([pictures.photo(await self._read(str(url))) for url in body["image_urls"]])
        ratio = {"portrait": 2 / 3, "landscape": 3 / 2}.get(str(body.get("dimension")), 1.0)
        return Blend(photos, ratio)


def _derive(task: Task, origin: Task, picture: Picture) -> None:
    """Set the picture of a task that is derived from another."""
    body = task.body
    match task.type:
        case "seed":
            return
        case "reroll":
            task.seed = pictures.mixed(origin.seed, "reroll")
            task.picture = pictures.grid_of(task.prompt, task.seed, ratio=picture.ratio)
        case "upscale":
            index = str(body["index"])
            task.picture = _chosen(picture, index) if index.isdecimal() else _single(picture)
            task.width = min(
                _MAX_WIDTH, _usual_width(picture) if index.isdecimal() else origin.width * _SCALES[index]
            )
        case "variation":
            index = str(body["index"])
            chosen = _chosen(picture, index) if index.isdecimal() else _single(picture)
            task.seed = pictures.mixed(origin.seed, f"variation {index}")
            task.picture = pictures.varied(chosen, task.prompt, task.seed, strongly=index == "high_variation")
        case "pan":
            task.picture = pictures.extended(_single(picture), str(body["direction"]))
            sideways = body["direction"] in {"left", "right"}
            task.width = min(_MAX_WIDTH, origin.width * 3 // 2 if sideways else origin.width)
        case "outpaint":
            given = str(body.get("aspect_ratio") or "")
            zoom = float(body["zoom_ratio"])
            ratio = pictures.ratio_in("", given) if given or zoom == 1 else None
            task.picture = pictures.zoomed_out(_single(picture), zoom, ratio=ratio)
        case "inpaint":
            over = pictures.view_of(task.prompt, pictures.seed_in(task.prompt, task.prompt), ratio=picture.ratio)
            mask = b64decode(str(body["mask"]))
            pictures.opened(mask)
            task.picture = Masked(_single(picture), over, mask)
            task.width = origin.width
        case _:
            raise Refused(f"{task.type} is not a type of task")


def _usual_width(picture: Picture) -> int:
    return round(sqrt(_PIXELS * picture.ratio))


def _chosen(picture: Picture, index: str) -> Picture:
    parts = parts_of(picture)
    number = int(index)
    if not 1 <= number <= len(parts):
        raise Refused(f"the task has no picture {number}")
    return parts[number - 1]


def _single(picture: Picture) -> Picture:
    if isinstance(picture, Grid):
        raise Refused("the task has four pictures: upscale one of them first")
    return picture
