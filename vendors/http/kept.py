"""Values that vendor clients keep between calls, such as tokens and keys, while the HTTP client is open."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from vendors.http.transport import VendorHttp

T = TypeVar("T")


class Kept(Generic[T]):
    """Values of one kind, by key. Each `VendorHttp` holds the `most` recently used ones.

    Vendor clients live only as long as one request, so they share these values.
    """

    def __init__(self, make: Callable[[], T], *, most: int) -> None:
        self._make = make
        self._most = most

    def of(self, http: VendorHttp, *key: str) -> T:
        """Return the value of `key`, which is created if necessary."""
        values = self._values(http)
        value = values.get(key)
        if value is None:
            value = values[key] = self._make()
            if len(values) > self._most:
                values.popitem(last=False)
        values.move_to_end(key)
        return value

    def known(self, http: VendorHttp, *key: str) -> T | None:
        """Return the value of `key`, if there is one."""
        values = self._values(http)
        if key in values:
            values.move_to_end(key)
        return values.get(key)

    def forget(self, http: VendorHttp, *key: str) -> None:
        self._values(http).pop(key, None)

    def _values(self, http: VendorHttp) -> OrderedDict[tuple[str, ...], T]:
        return http.kept.setdefault(self, OrderedDict())
