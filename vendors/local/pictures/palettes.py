"""The colours of drawn scenes, chosen by the words of a prompt or, without such a word, by its hash."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

Colour = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours are red, green and blue from 0 to 1. `sky` has those of its top, its middle and the horizon."""

    name: str
    sky: tuple[Colour, Colour, Colour]
    far: Colour
    near: Colour
    light: Colour
    """The sun or the moon."""
    night: bool = False


def _colour(code: str) -> Colour:
    return int(code[:2], 16) / 255, int(code[2:4], 16) / 255, int(code[4:], 16) / 255


def _palette(name: str, colours: str, *, night: bool = False) -> Palette:
    top, middle, low, far, near, light = map(_colour, colours.split())
    return Palette(name, (top, middle, low), far, near, light, night)


PALETTES: Mapping[str, Palette] = {
    palette.name: palette
    for palette in (
        _palette("sunset", "2b2d64 c4557a ffb066 a8577e 2a1a3c fff0c9"),
        _palette("dawn", "6c8cc4 f2b8c6 ffe3c2 a99bc4 39406b fff7e6"),
        _palette("noon", "3f8fd6 8cc6ef e3f3fb 8fb6c9 2c5d55 fffbe8"),
        _palette("night", "070b24 16245a 3b4d8f 2a3a6e 070a1c f4f1de", night=True),
        _palette("aurora", "04121f 0b3b4a 3fbf9b 155560 04141c e6fff4", night=True),
        _palette("forest", "a7c9c0 cfe3cf f2f4df 7fa68f 12352f fffdf0"),
        _palette("desert", "5fa3c7 f3cf9b ffe6c0 d98e5f 6e3426 fff6dc"),
        _palette("snow", "8fb3d9 cfe0ef f7fafc b5c9de 4f6b8c ffffff"),
        _palette("sea", "1f5f8b 5fb0c9 d8f0ea 4f93a8 0d3b52 fff8e1"),
        _palette("mars", "5b2333 b5534a f0a57a 9c4a44 2b0f14 ffe9d2"),
    )
}
_WORDS: Mapping[str, tuple[str, ...]] = {
    "sunset": ("sunset", "evening", "dusk", "fire", "red", "orange", "autumn"),
    "dawn": ("dawn", "sunrise", "morning", "spring", "pink", "flower", "flowers", "cherry"),
    "noon": ("noon", "day", "summer", "sky", "blue", "bird", "cat", "dog"),
    "night": ("night", "moon", "stars", "star", "space", "dark", "city", "owl", "galaxy"),
    "aurora": ("aurora", "arctic", "neon", "alien", "magic", "dream"),
    "forest": ("forest", "tree", "trees", "green", "wood", "jungle", "fox", "deer", "mist", "fog"),
    "desert": ("desert", "sand", "dune", "dunes", "camel", "canyon", "egypt"),
    "snow": ("snow", "winter", "ice", "mountain", "mountains", "white", "bear", "penguin"),
    "sea": ("sea", "ocean", "lake", "water", "river", "island", "beach", "boat", "ship", "fish", "whale"),
    "mars": ("mars", "planet", "volcano", "lava", "dragon", "martian"),
}
_BY_WORD = {word: name for name, words in _WORDS.items() for word in words}
_WORD = re.compile(r"[a-z]+")


def palette_of(prompt: str, seed: int) -> Palette:
    """Return the palette of the first word of the prompt that suggests one."""
    for word in _WORD.findall(prompt.lower()):
        if word in _BY_WORD:
            return PALETTES[_BY_WORD[word]]
    names = sorted(PALETTES)
    return PALETTES[names[seed % len(names)]]
