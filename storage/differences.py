"""Differences between what is stored and what follows from the ledger."""

from dataclasses import dataclass

MAX = 10_000
"""How many differences of one kind are listed at the most."""


@dataclass(frozen=True, slots=True)
class Difference:
    app_id: str
    uid: str
    subject: str
    """What differs: an asset, a withdrawal, a share group or the use of a quota."""
    problem: str
    """What is stored, and what should be."""
