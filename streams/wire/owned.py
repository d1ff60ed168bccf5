"""Things that belong to a user, and that requests name by an id."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from streams.wire.errors import ItemNotFound
from streams.wire.ids import is_id

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Owned:
    """A kind of thing that belongs to a user and has an id of `new_id`.

    A thing of another user, one that does not exist and an id that cannot exist get the same error.
    """

    error: Callable[[str], ItemNotFound]
    """The class of this error. It is created with the id that the request names."""

    def validate(self, text: str) -> str:
        """Return `text` if it has the form of an id. Raises the error otherwise."""
        if not is_id(text):
            raise self.error(text)
        return text

    def require(self, name: str, thing: T | None) -> T:
        """Return `thing`, the result of looking up `name` among those of the caller. Raises the error for None."""
        if thing is None:
            raise self.error(name)
        return thing
