"""Things that belong to a user, and that requests name by an id."""

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

    field: str
    """The field of the request that names it."""
    what: str
    """What the field names, such as `conversation of this user`."""

    def error(self) -> ItemNotFound:
        return ItemNotFound(f"{self.field} names no {self.what}")

    def checked(self, text: str) -> str:
        """Return `text` if it has the form of an id. Raises `ItemNotFound`."""
        if not is_id(text):
            raise self.error()
        return text

    def found(self, thing: T | None) -> T:
        """Return `thing`, the result of a look-up among those of the caller. Raises `ItemNotFound` for None."""
        if thing is None:
            raise self.error()
        return thing
