"""Cut long recordings into pieces, at a pause if there is one."""

from array import array
from collections.abc import Iterator

_SEARCHED_S = 10
"""The part at the end of a piece in which a pause is searched. Speakers rarely go on for longer without one."""
_WINDOW_S = 0.2
_STEP_S = 0.1
_EVERY = 8
"""One of so many samples is examined, which suffices to find a pause."""


def slices(samples: bytes, *, sample_rate: int, channels: int = 1, max_s: float) -> Iterator[bytes]:
    """Yield consecutive pieces of 16-bit samples, each of at most `max_s`, cut where it is most quiet."""
    frame_bytes = 2 * channels
    longest = int(max_s * sample_rate) * frame_bytes
    begin = 0
    while len(samples) - begin > longest:
        end = begin + longest
        searched = int(_SEARCHED_S * sample_rate) * frame_bytes
        cut = end - searched + _quietest(samples[end - searched : end], sample_rate * frame_bytes, frame_bytes)
        yield samples[begin:cut]
        begin = cut
    yield samples[begin:]


def _quietest(samples: bytes, bytes_per_s: int, frame_bytes: int) -> int:
    """Return the middle of the most quiet window, as an offset between two frames."""
    window, step = (int(seconds * bytes_per_s) // frame_bytes * frame_bytes for seconds in (_WINDOW_S, _STEP_S))
    values = array("h", samples)

    def loudness(at: int) -> int:
        return sum(map(abs, values[at // 2 : (at + window) // 2 : _EVERY]))

    at = min(range(0, len(samples) - window + 1, step), key=loudness)
    return at + window // 2 // frame_bytes * frame_bytes
