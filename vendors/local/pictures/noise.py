"""Noise that is the same at each point of the plane, however much of the plane is drawn."""

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float32]


def _hash(x: NDArray[np.int64], y: NDArray[np.int64], seed: int) -> Field:
    """Return a number from 0 to 1 for each point of a lattice."""
    mixed = (x * 374761393 + y * 668265263 + (seed & 0xFFFFFF) * 2147483647) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 1274126177) & 0xFFFFFFFF
    return ((mixed ^ (mixed >> 16)) & 0xFFFF).astype(np.float32) / np.float32(0xFFFF)


def value(x: Field, y: Field, seed: int) -> Field:
    """Return smooth noise from 0 to 1, whose features are about 1 wide."""
    left, top = np.floor(x), np.floor(y)
    u, v = x - left, y - top
    u, v = u * u * (3 - 2 * u), v * v * (3 - 2 * v)
    column, row = left.astype(np.int64), top.astype(np.int64)
    above = _hash(column, row, seed) * (1 - u) + _hash(column + 1, row, seed) * u
    below = _hash(column, row + 1, seed) * (1 - u) + _hash(column + 1, row + 1, seed) * u
    return (above * (1 - v) + below * v).astype(np.float32)


def fractal(x: Field, y: Field, seed: int, *, octaves: int) -> Field:
    """Return noise from 0 to 1 with features of several sizes."""
    total, weight = np.zeros_like(x), 0.5
    for octave in range(octaves):
        scale = np.float32(2.03**octave)
        total += np.float32(weight) * value(x * scale, y * scale, seed + octave * 101)
        weight /= 2
    return total / np.float32(1 - 0.5**octaves)


def stars(x: Field, y: Field, seed: int, *, pixel: float) -> Field:
    """Return the light of stars, one in a few cells of the plane."""
    scale = np.float32(38)
    column, row = np.floor(x * scale).astype(np.int64), np.floor(y * scale).astype(np.int64)
    chosen = _hash(column, row, seed) > 0.93
    centre_x = (column + _hash(column, row, seed + 1)) / scale
    centre_y = (row + _hash(column, row, seed + 2)) / scale
    radius = np.float32(max(pixel, 0.0008)) * (0.7 + 1.6 * _hash(column, row, seed + 3))
    distance = np.hypot(x - centre_x, y - centre_y)
    return np.where(chosen, np.exp(-((distance / radius) ** 2)), 0).astype(np.float32)
