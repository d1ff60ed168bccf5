"""Pages of lists: one style for all lists of which the interface does not fix another.

A list begins with its newest entry, unless its query says otherwise. The reply to one page has `next` if there are
further entries.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, Field

from streams.wire.ids import is_id
from streams.wire.model import Model, QueryInt

Cursor = TypeVar("Cursor")
Row = TypeVar("Row")


class PageQuery(Model, Generic[Cursor]):
    """The page that is asked for. `Cursor` is the type of the position in the list."""

    before: Cursor | None = None
    """`next` of the page before this one; absent: the first page."""
    size: QueryInt = Field(default=20, ge=1, le=100)
    """Maximum number of entries."""


class SortedQuery(PageQuery[Cursor], Generic[Cursor]):
    """The page of a list that can also begin with its oldest entry."""

    sort: Literal["created", "-created"] = "-created"
    """`created`: the oldest first. `-created`: the newest first."""

    @property
    def oldest_first(self) -> bool:
        return self.sort == "created"


class Page(Model, Generic[Cursor]):
    next: Cursor | None = None
    """`before` of the next page; absent on the last page."""


def cursor(matches: Callable[[str], object]) -> AfterValidator:
    """Return a validator of text cursors: those for which `matches` returns a true value."""

    def validate(text: str) -> str:
        if not matches(text):
            raise ValueError("must be `next` of a page of this list")
        return text

    return AfterValidator(validate)


IdCursor = Annotated[str, cursor(is_id)]
"""The position of an entry whose id is one of `new_id`, in a list in the order of ids."""


def page_of(
    rows: Sequence[Row], size: int, cursor_of: Callable[[Row], Cursor]
) -> tuple[Sequence[Row], Cursor | None]:
    """Return the rows of a page and its `next`. `rows` holds one more than `size` if there are further entries."""
    page = rows[:size]
    return page, cursor_of(page[-1]) if len(rows) > size else None
