"""The kinds of calls that are measured, in the order of the report."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench.operations.testbed import OperationsTestbed

Ask = Callable[[int], Awaitable[int]]
"""Makes the call with this number, and returns how many bytes the client received in streams."""
Prepare = Callable[[OperationsTestbed, int], Awaitable[Ask]]
"""Prepares this number of calls, which is not measured. Call `n + at_once` follows call `n`."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`share`: the number of calls, as a share of that of other kinds."""

    name: str
    prepare: Prepare
    at_once: int = 8
    share: float = 1
