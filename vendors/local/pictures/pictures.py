"""The kinds of pictures: views of scenes, grids of four, photos, and pictures derived from these."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Protocol

import numpy as np
from PIL import Image, UnidentifiedImageError

from vendors.local.pictures.palettes import palette_of
from vendors.local.pictures.scenes import Pixels, Scene, Window

_MAX_PIXELS = 64_000_000
_RATIOS = (0.25, 4.0)
_RATIO = re.compile(r"--ar\s+(\d{1,4}):(\d{1,4})")
_SEED = re.compile(r"--seed\s+(\d{1,10})")


class NoImage(ValueError):
    """A file is not an image that can be read."""


class Picture(Protocol):
    @property
    def ratio(self) -> float:
        """The width divided by the height."""
        ...

    def draw(self, width: int) -> Pixels:
        """Return rows of `width` pixels."""
        ...


def height_of(picture: Picture, width: int) -> int:
    return max(1, round(width / picture.ratio))


@dataclass(frozen=True, slots=True)
class View:
    """A window of a scene."""

    scene: Scene
    window: Window

    @property
    def ratio(self) -> float:
        return self.window.width / self.window.height

    def draw(self, width: int) -> Pixels:
        return fitted(self.scene.draw(self.window, width=width), width, height_of(self, width))


@dataclass(frozen=True, slots=True)
class Grid:
    """Four pictures of the same ratio."""

    parts: tuple[Picture, Picture, Picture, Picture]

    @property
    def ratio(self) -> float:
        return self.parts[0].ratio

    def draw(self, width: int) -> Pixels:
        half = width // 2
        first, second, third, fourth = (part.draw(half) for part in self.parts)
        whole = np.vstack([np.hstack([first, second]), np.hstack([third, fourth])])
        return fitted(whole, width, height_of(self, width))


@dataclass(frozen=True, slots=True)
class Photo:
    """An image file."""

    content: bytes
    ratio: float

    def draw(self, width: int) -> Pixels:
        return _pixels(opened(self.content).convert("RGB"), width, height_of(self, width))


@dataclass(frozen=True, slots=True)
class Blend:
    """Pictures on top of each other."""

    parts: tuple[Picture, ...]
    ratio: float

    def draw(self, width: int) -> Pixels:
        height = height_of(self, width)
        layers = [_cropped(part, width, height) for part in self.parts]
        mean: Pixels = np.mean(layers, axis=0, dtype=np.float32)
        return mean


@dataclass(frozen=True, slots=True)
class Masked:
    """A picture with another one where a mask is white."""

    base: Picture
    over: Picture
    mask: bytes

    @property
    def ratio(self) -> float:
        return self.base.ratio

    def draw(self, width: int) -> Pixels:
        height = height_of(self, width)
        share = _pixels(opened(self.mask).convert("L").convert("RGB"), width, height)
        return self.base.draw(width) * (1 - share) + _cropped(self.over, width, height) * share


@dataclass(frozen=True, slots=True)
class Extended:
    """A picture whose edges are mirrored, for those that do not continue. `window` is 1 wide and high without."""

    base: Picture
    window: Window

    @property
    def ratio(self) -> float:
        return self.base.ratio * self.window.width / self.window.height

    def draw(self, width: int) -> Pixels:
        inner = max(1, round(width / self.window.width))
        pixels = self.base.draw(inner)
        high = pixels.shape[0]
        left, top = round(-self.window.left * inner), round(-self.window.top * high)
        right = max(0, width - inner - left)
        bottom = max(0, height_of(self, width) - high - top)
        padded = np.pad(pixels, ((top, bottom), (left, right), (0, 0)), mode="symmetric")
        return fitted(padded, width, height_of(self, width))


def view_of(prompt: str, seed: int, *, ratio: float) -> View:
    return View(Scene(seed, palette_of(prompt, seed)), Window(0, 0, ratio, 1))


def grid_of(prompt: str, seed: int, *, ratio: float, under: Picture | None = None) -> Grid:
    """Return four pictures of a prompt. `under` shows through each of them."""
    parts: list[Picture] = [view_of(prompt, mixed(seed, number), ratio=ratio) for number in range(4)]
    if under is not None:
        parts = [Blend((part, under), ratio) for part in parts]
    first, second, third, fourth = parts
    return Grid((first, second, third, fourth))


def varied(picture: Picture, prompt: str, seed: int, *, strongly: bool) -> Grid:
    """Return four pictures like one: in the same colours, unless `strongly`."""
    if isinstance(picture, View) and not strongly:
        scene, window = picture.scene, picture.window
        first, second, third, fourth = (
            View(replace(scene, seed=mixed(scene.seed ^ seed, number)), window) for number in range(4)
        )
        return Grid((first, second, third, fourth))
    return grid_of(prompt, seed, ratio=picture.ratio, under=None if isinstance(picture, View) else picture)


def extended(picture: Picture, direction: str) -> Picture:
    if isinstance(picture, View):
        return replace(picture, window=picture.window.extended(direction))
    return Extended(picture, Window(0, 0, 1, 1).extended(direction))


def zoomed_out(picture: Picture, zoom: float, *, ratio: float | None) -> Picture:
    """Return a picture with more around it. With `ratio`, it becomes that wide instead of being zoomed."""
    if isinstance(picture, View):
        window = picture.window if ratio is None else picture.window.with_ratio(ratio)
        return replace(picture, window=window.zoomed_out(zoom))
    window = Window(0, 0, 1, 1) if ratio is None else Window(0, 0, 1, 1).with_ratio(ratio / picture.ratio)
    return Extended(picture, window.zoomed_out(zoom))


def photo(content: bytes) -> Photo:
    """Return an image file as a picture. Raises `NoImage`."""
    image = opened(content)
    return Photo(content, _bounded(image.width / image.height))


def opened(content: bytes) -> Image.Image:
    """Open an image file. Raises `NoImage`, including for too many pixels."""
    try:
        image = Image.open(BytesIO(content), formats=("PNG", "JPEG", "WEBP", "GIF"))
        if image.width * image.height > _MAX_PIXELS:
            raise NoImage("the image has too many pixels")
        image.load()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise NoImage("the file is not an image that can be read") from error
    return image


def png(picture: Picture, width: int) -> bytes:
    pixels = np.clip(picture.draw(width) * 255 + 0.5, 0, 255).astype(np.uint8)
    file = BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=4)
    return file.getvalue()


def mean_colours(content: bytes, rows: int) -> Pixels:
    """Return the mean colours of `rows` bands of an image, from its top."""
    bands: Pixels = _pixels(opened(content).convert("RGB"), 1, rows)[:, 0]
    return bands


def ratio_in(prompt: str, given: str) -> float:
    """Return the ratio in a field or, if that is empty, in the prompt."""
    found = _RATIO.search(prompt)
    width, height = given.split(":") if given else found.groups() if found else ("1", "1")
    return _bounded(int(width) / max(1, int(height)))


def seed_in(prompt: str, unique: str) -> int:
    """Return the seed in a prompt, or one that depends on `unique`."""
    found = _SEED.search(prompt)
    return int(found[1]) if found else mixed(0, unique)


def mixed(seed: int, of: object) -> int:
    """Return a number that depends on both arguments, and on nothing else."""
    digest = hashlib.sha256(f"{seed} {of}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def fitted(pixels: Pixels, width: int, height: int) -> Pixels:
    """Cut pixels, or repeat the last ones, that rounding has added or left out."""
    rows = np.minimum(np.arange(height), pixels.shape[0] - 1)
    columns = np.minimum(np.arange(width), pixels.shape[1] - 1)
    result: Pixels = pixels[rows][:, columns]
    return result


def _bounded(ratio: float) -> float:
    return min(max(ratio, _RATIOS[0]), _RATIOS[1])


def _cropped(picture: Picture, width: int, height: int) -> Pixels:
    """Return the middle of a picture that fills a frame."""
    inner = max(width, round(height * picture.ratio))
    pixels = picture.draw(inner)
    top, left = max(0, (pixels.shape[0] - height) // 2), max(0, (inner - width) // 2)
    return fitted(pixels[top:, left:], width, height)


def _pixels(image: Image.Image, width: int, height: int) -> Pixels:
    resized = image.resize((width, height), Image.Resampling.LANCZOS if width > 1 else Image.Resampling.BOX)
    return np.asarray(resized, np.float32) / np.float32(255)


def parts_of(picture: Picture) -> Sequence[Picture]:
    return picture.parts if isinstance(picture, Grid) else (picture,)
