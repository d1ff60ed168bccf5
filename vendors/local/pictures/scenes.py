"""Draws scenes: a sky with a sun or a moon, ridges of mountains and woods, and water, from a prompt and a seed.

A scene covers the whole plane, and a picture is a window of it. So a picture that is extended continues.
"""

import random
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vendors.local.pictures import noise
from vendors.local.pictures.noise import Field
from vendors.local.pictures.palettes import Colour, Palette

Pixels = NDArray[np.float32]
"""Rows of pixels, each red, green and blue from 0 to 1."""
_RIDGES = 5


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the plane that is seen. The first picture of a scene is 1 high, from y = 0 at its top."""

    left: float
    top: float
    width: float
    height: float

    def extended(self, direction: str, share: float = 0.5) -> "Window":
        """Return the window with a further part of the plane in a direction."""
        if direction in {"left", "right"}:
            more = self.width * share
            left = self.left - more if direction == "left" else self.left
            return replace(self, left=left, width=self.width + more)
        more = self.height * share
        return replace(self, top=self.top - more if direction == "up" else self.top, height=self.height + more)

    def zoomed_out(self, ratio: float) -> "Window":
        width, height = self.width * ratio, self.height * ratio
        return Window(self.left - (width - self.width) / 2, self.top - (height - self.height) / 2, width, height)

    def with_ratio(self, ratio: float) -> "Window":
        """Return the smallest window around this one whose width is `ratio` times its height."""
        width, height = max(self.width, self.height * ratio), max(self.height, self.width / ratio)
        return Window(self.left - (width - self.width) / 2, self.top - (height - self.height) / 2, width, height)


@dataclass(frozen=True, slots=True)
class Scene:
    seed: int
    palette: Palette

    def draw(self, window: Window, *, width: int) -> Pixels:
        """Return the pixels of a window, `width` of them in a row."""
        height = max(1, round(width * window.height / window.width))
        pixel = window.width / width
        columns = window.left + (np.arange(width, dtype=np.float32) + 0.5) * np.float32(pixel)
        rows = window.top + (np.arange(height, dtype=np.float32) + 0.5) * np.float32(pixel)
        x, y = (grid.astype(np.float32) for grid in np.meshgrid(columns, rows))
        rng = random.Random(self.seed)  # noqa: S311 - repeatable, not used for security
        horizon = 0.5 + 0.14 * rng.random()
        pixels = self._sky(x, y, rng, horizon=horizon, pixel=pixel)
        water = horizon + 0.24 + 0.1 * rng.random() if rng.random() < 0.55 else None
        self._ridges(pixels, x, y, rng, horizon=horizon, pixel=pixel, water=water)
        if water is not None:
            _reflect(pixels, x, y, water=water, top=window.top, pixel=pixel, seed=self.seed, deep=self.palette.near)
        return np.clip(pixels, 0, 1)

    def _sky(self, x: Field, y: Field, rng: random.Random, *, horizon: float, pixel: float) -> Pixels:
        palette = self.palette
        height = np.clip((y + 0.15) / np.float32(horizon + 0.15), 0, 1)
        top, middle, low = (np.array(colour, np.float32) for colour in palette.sky)
        upper = _mixed(top, middle, _smooth(height * 2))
        pixels = _mixed(upper, low, _smooth(height * 2 - 1))
        if palette.night:
            shine = noise.stars(x, y, self.seed, pixel=pixel) * (1 - height)
            pixels += shine[..., None]
        light = np.array(palette.light, np.float32)
        centre_x, centre_y = 0.25 + 0.9 * rng.random(), horizon * (0.25 + 0.5 * rng.random())
        radius = 0.045 + 0.05 * rng.random()
        distance = np.hypot(x - np.float32(centre_x), y - np.float32(centre_y))
        glow = 0.55 * np.exp(-distance * 5) + 0.35 * np.exp(-distance * 16)
        pixels = _mixed(pixels, light, np.clip(glow, 0, 1).astype(np.float32))
        pixels = _mixed(pixels, light, _edge(radius - distance, pixel))
        above = slice(0, int(np.searchsorted(y[:, 0], horizon + 0.05)))  # Ridges hide what is below.
        clouds = noise.fractal(x[above] * 1.6, y[above] * 5.5, self.seed + 7, octaves=4)
        most = np.float32(0.25 if palette.night else 0.6)
        cover = _smooth((clouds - 0.52) * 4) * most * (1 - 0.5 * height[above])
        pixels[above] = _mixed(pixels[above], _mixed(low, light, np.float32(0.5)), cover.astype(np.float32))
        return pixels

    def _ridges(
        self,
        pixels: Pixels,
        x: Field,
        y: Field,
        rng: random.Random,
        *,
        horizon: float,
        pixel: float,
        water: float | None,
    ) -> None:
        far, near = (np.array(colour, np.float32) for colour in (self.palette.far, self.palette.near))
        haze = np.array(self.palette.sky[2], np.float32)
        nearest = 0.97 if water is None else water - 0.03
        line = x[:1]
        for ridge in range(_RIDGES):
            depth = ridge / (_RIDGES - 1)
            base = horizon + (nearest - horizon) * depth
            rise = (0.20 - 0.10 * depth) * (0.7 + 0.6 * rng.random())
            phase = rng.random() * 1000
            crest = noise.fractal(
                line * (2.2 + 2.4 * depth) + np.float32(phase), np.zeros_like(line), self.seed + ridge, octaves=6
            )
            top = base - rise * (crest * 1.6 - 0.55)
            if depth > 0.6:
                top -= _trees(line, self.seed + ridge, height=0.02 + 0.03 * depth)
            rows = slice(int(np.searchsorted(y[:, 0], float(top.min()) - 2 * pixel)), None)
            below = y[rows] - top
            colour = _mixed(far, near, np.float32(depth))
            mist = (np.clip(below / 0.22, 0, 1) * (0.5 * (1 - depth))).astype(np.float32)
            pixels[rows] = _mixed(pixels[rows], _mixed(colour, haze, mist), _edge(below, pixel))


def _trees(line: Field, seed: int, *, height: float) -> Field:
    """Return how far the tops of trees reach above a ridge."""
    tops = np.zeros_like(line)
    for kind, scale in enumerate((46.0, 71.0)):
        cell = np.floor(line * np.float32(scale))
        size = noise.value((cell * 13.7).astype(np.float32), np.full_like(cell, kind), seed + 31)
        place = np.abs(line * np.float32(scale) - cell - 0.5) * 2
        tops = np.maximum(tops, np.float32(height) * (0.35 + size) * np.clip(1 - place, 0, 1))
    return tops


def _reflect(
    pixels: Pixels, x: Field, y: Field, *, water: float, top: float, pixel: float, seed: int, deep: Colour
) -> None:
    """Draw the reflection of the scene in the water, with waves."""
    height, width = pixels.shape[:2]
    shore = round((water - top) / pixel)
    if shore >= height:
        return
    first = max(shore, 0)
    rows, columns = np.arange(first, height), np.arange(width)
    depth = ((rows - shore) * pixel).astype(np.float32)[:, None]
    flat = (y[first:] * (70 / (1 + 6 * depth))).astype(np.float32)
    waves = noise.value(x[first:] * 5, flat, seed + 77) - 0.5
    source_row = np.clip(
        2 * shore - rows[:, None] + (waves * 40 * depth / pixel * 0.12).astype(np.int64), 0, height - 1
    )
    source_row = np.minimum(source_row, max(shore - 1, 0))
    source_column = np.clip(columns[None] + (waves * 0.05 / pixel * (0.3 + depth)).astype(np.int64), 0, width - 1)
    mirrored = pixels[source_row, source_column]
    tint = np.clip(0.22 + depth * 0.9, 0, 0.75)
    pixels[first:] = _mixed(mirrored, np.array(deep, np.float32), np.broadcast_to(tint, mirrored.shape[:2]))
    pixels[first:] += (np.clip(waves - 0.3, 0, 1) * 0.5 * np.exp(-depth * 3))[..., None]


def _smooth(value: Field) -> Field:
    share = np.clip(value, 0, 1).astype(np.float32)
    smooth: Field = share * share * (3 - 2 * share)
    return smooth


def _edge(inside: Field, pixel: float) -> Field:
    """Return how much of each pixel is covered, from the distance to the edge."""
    covered: Field = np.clip(inside / np.float32(1.5 * pixel) + 0.5, 0, 1).astype(np.float32)
    return covered


def _mixed(under: Pixels, over: Pixels, share: Field | np.float32) -> Pixels:
    weight = share[..., None] if isinstance(share, np.ndarray) else share
    result: Pixels = (under * (1 - weight) + over * weight).astype(np.float32)
    return result
