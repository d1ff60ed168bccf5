"""The vendor's failing calls in a soak, by the turn that made them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

from bench.soak.observations import Stream
from streams.wire.codec import loads

_TURN = re.compile(r"Turn (\d+) of user (\d+):")
"""The beginning of each text that a caller sends; recordings all have the same transcript."""
_MAX_NOTICE_S = 10
"""The maximum time from the start of a failure to the `error` event of its stream. A call without output fails
after 4 s."""


@dataclass(slots=True)
class VendorFaults:
    """The failed calls so far."""

    turns: set[tuple[int, int]] = field(default_factory=set)
    """The turns with a failed call: the user, and the number of the stream among those of the user."""
    anonymous_s: list[float] = field(default_factory=list)
    """The times of failed calls of streams with audio input, in seconds since the start of the load."""

    @classmethod
    def of(cls, lines: Iterable[bytes], *, begun: datetime) -> Self:
        """Read what `bench.upstream --faults` has written. `begun` is when the load began."""
        faults = cls()
        for line in lines:
            fault = loads(line)
            if match := _TURN.match(fault["said"]):
                faults.turns.add((int(match[2]), int(match[1])))
            else:
                faults.anonymous_s.append(fault["at"] - begun.timestamp())
        return faults

    def explains(self, stream: Stream) -> bool:
        """Return whether a call of this stream failed."""
        if stream.kind == "audio":
            begin_s = max(stream.begin_s, stream.end_s - _MAX_NOTICE_S)
            return any(begin_s <= at_s <= stream.end_s for at_s in self.anonymous_s)
        return (stream.user, stream.number) in self.turns
