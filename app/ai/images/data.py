"""The `data` of requests for images, by their type (§4.20)."""

from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from storage.configs.kinds.images import ProcessMode
from streams.wire.model import Matches, Model, not_blank
from vendors.hosts.midjourney import ImageType

_PROMPT_CHARACTERS = 8000
_URL_CHARACTERS = 2048


def _as_text(value: Any) -> Any:
    """Return a number as the text that the host wants."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:g}" if is_number else value


Prompt = Annotated[str, Field(max_length=_PROMPT_CHARACTERS), AfterValidator(not_blank)]
AspectRatio = Annotated[
    str, Matches(r"^[1-9][0-9]{0,3}:[1-9][0-9]{0,3}$", "must be a ratio of two numbers, such as 16:9")
]
Url = Annotated[str, Field(min_length=1, max_length=_URL_CHARACTERS)]
TaskId = Annotated[str, Field(min_length=1, max_length=255)]
UpscaleIndex = Annotated[
    Literal["1", "2", "3", "4", "2x", "4x", "subtle", "creative", "light", "beta"], BeforeValidator(_as_text)
]
VariationIndex = Annotated[
    Literal["1", "2", "3", "4", "high_variation", "low_variation"], BeforeValidator(_as_text)
]
ZoomRatio = Annotated[
    str, BeforeValidator(_as_text), Matches(r"^(1(\.[0-9]{1,2})?|2(\.0{1,2})?)$", "must be from 1 to 2")
]


D = TypeVar("D", bound="ImageData")


class ImageData(Model):
    """The names of the fields are those of the host's calls."""


class ImagineData(ImageData):
    prompt: Prompt
    aspect_ratio: AspectRatio | None = None
    """Ignored if the prompt has `--ar`."""
    process_mode: ProcessMode | None = None


class RerollData(ImageData):
    origin_task_id: TaskId


class SeedData(ImageData):
    origin_task_id: TaskId


class UpscaleData(ImageData):
    origin_task_id: TaskId
    index: UpscaleIndex
    """The picture of the grid, or how an upscaled picture is enlarged further."""


class VariationData(ImageData):
    origin_task_id: TaskId
    index: VariationIndex
    """The picture of the grid, or how much an upscaled picture is varied."""
    prompt: Prompt | None = None
    aspect_ratio: AspectRatio | None = None


class PanData(ImageData):
    origin_task_id: TaskId
    direction: Literal["up", "down", "left", "right"]
    prompt: Prompt | None = None


class InpaintData(ImageData):
    origin_task_id: TaskId
    mask: Annotated[str, Field(min_length=1)]
    """The URL of an image of the user, or the base64 of an image. What is to be drawn anew is white."""
    prompt: Prompt


class OutpaintData(ImageData):
    origin_task_id: TaskId
    zoom_ratio: ZoomRatio
    """From 1 to 2. 1 makes the picture as wide as `aspect_ratio`, or a square."""
    prompt: Prompt | None = None
    aspect_ratio: AspectRatio | None = None


class DescribeData(ImageData):
    image_url: Url
    """The URL of an image of the user."""
    process_mode: ProcessMode | None = None


class BlendData(ImageData):
    image_urls: list[Url] = Field(min_length=2, max_length=5)
    """The URLs of two to five images of the user."""
    dimension: Literal["square", "portrait", "landscape"] | None = None
    process_mode: ProcessMode | None = None


DATA: Mapping[ImageType, type[ImageData]] = {
    "imagine": ImagineData,
    "reroll": RerollData,
    "upscale": UpscaleData,
    "variation": VariationData,
    "inpaint": InpaintData,
    "outpaint": OutpaintData,
    "pan": PanData,
    "describe": DescribeData,
    "blend": BlendData,
    "seed": SeedData,
}


class NewImage(Model):
    strategy: Annotated[str, Field(min_length=1, max_length=255)]
    """Name of a config of kind `images`."""
    type: ImageType
    """The type of the task."""
    data: dict[str, Any]
    """Depends on the type: imagine `prompt`, `aspect_ratio?`, `process_mode?`; reroll and seed `origin_task_id`;
    upscale and variation `origin_task_id`, `index`; pan `origin_task_id`, `direction`; inpaint `origin_task_id`,
    `mask`, `prompt`; outpaint `origin_task_id`, `zoom_ratio`, `prompt?`; describe `image_url`; blend `image_urls`.
    `origin_task_id` is the `task_id` of a task of the user that has finished. URLs are of images of the user."""
    image_url: Url | None = None
    """The URL, or the path, of an image of the user that is put before `data.prompt`."""

    @model_validator(mode="after")
    def _check_prompt(self) -> "NewImage":
        if self.image_url is not None and not isinstance(self.data.get("prompt"), str):
            raise ValueError("image_url needs data.prompt")
        return self

    def typed(self) -> ImageData:
        """Return `data` as its type requires. Raises `InvalidParameter`."""
        data: ImageData = _READERS[self.type].of({"data": self.data}).data
        return data


class _Holder(Model, Generic[D]):
    """Makes the paths in errors begin with `data`."""

    data: D


_READERS: Mapping[ImageType, type[_Holder[Any]]] = {name: _Holder[model] for name, model in DATA.items()}  # type: ignore[valid-type]
