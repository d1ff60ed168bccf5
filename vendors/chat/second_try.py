"""Opens a response, or another one if it is refused. Cheaper than a generator, as every stream needs it."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar

from vendors.errors import VendorError

T = TypeVar("T")


class second_try(Generic[T]):  # noqa: N801 - used like a function
    """A context manager that enters `first` or, if the vendor refuses that, what `second` returns for the error.

    If `second` returns `None`, the error is raised.
    """

    __slots__ = ("_entered", "_second")

    def __init__(
        self,
        first: AbstractAsyncContextManager[T],
        second: Callable[[VendorError], AbstractAsyncContextManager[T] | None],
    ) -> None:
        self._entered = first
        self._second = second

    async def __aenter__(self) -> T:
        try:
            return await self._entered.__aenter__()
        except VendorError as error:
            if (again := self._second(error)) is None:
                raise
        self._entered = again
        return await self._entered.__aenter__()

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Coroutine[Any, Any, bool | None]:
        return self._entered.__aexit__(kind, error, trace)
