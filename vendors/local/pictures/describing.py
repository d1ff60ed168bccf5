"""Describes an image by its colours, from top to bottom."""

import colorsys
from collections.abc import Sequence

from vendors.local.pictures.pictures import mean_colours

_HUES = (
    (0.04, "red"),
    (0.11, "orange"),
    (0.19, "yellow"),
    (0.43, "green"),
    (0.52, "turquoise"),
    (0.70, "blue"),
    (0.83, "violet"),
    (0.95, "pink"),
    (1.01, "red"),
)
_BANDS = ("sky", "horizon", "foreground")


def described(content: bytes) -> list[str]:
    """Return four prompts for an image. Raises `NoImage`."""
    top, middle, bottom = (_name(*map(float, colour)) for colour in mean_colours(content, len(_BANDS)))
    light = sum(float(colour.mean()) for colour in mean_colours(content, len(_BANDS))) / len(_BANDS)
    mood = "at night" if light < 0.25 else "in soft light" if light < 0.6 else "in bright light"
    return [
        f"a landscape with a {top} sky above a {bottom} foreground, {mood}",
        f"{middle} mountains between {top} and {bottom}, flat illustration, layered silhouettes",
        f"a quiet scene {mood}, in {_listed([top, middle, bottom])}",
        f"minimal poster of a {middle} horizon, {mood}, gradients of {_listed([top, middle])}",
    ]


def _name(red: float, green: float, blue: float) -> str:
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    if saturation < 0.12 or not 0.06 < lightness < 0.94:
        return "black" if lightness < 0.25 else "white" if lightness > 0.75 else "grey"
    name = next(name for limit, name in _HUES if hue < limit)
    return f"dark {name}" if lightness < 0.3 else f"pale {name}" if lightness > 0.75 else name


def _listed(names: Sequence[str]) -> str:
    unique = list(dict.fromkeys(names))
    return unique[0] if len(unique) == 1 else f"{', '.join(unique[:-1])} and {unique[-1]}"
