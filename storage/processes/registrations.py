"""Which of Valkey's keys are complete: whether all live processes have registered their streams since a loss.

Users are registered in groups (`storage/valkey/groups.py`), because a cluster loses keys by slot.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import structlog

from storage.postgres.database import Database, map_errors
from storage.processes import processes as rows
from storage.valkey.client import VALKEY_ERRORS, Valkey, store_error

log = structlog.get_logger()

_READ_S = 5


@dataclass(slots=True)
class _Group:
    """A group of users. `keys` are those of `register.lua`."""

    keys: list[str]
    run_id: str = ""
    """Run id of the Valkey in which this process has registered its streams; empty if some may be missing."""
    losses: object = field(default=None)
    """`Valkey.losses` before that registration."""

    @property
    def registered_key(self) -> str:
        return self.keys[1]


class Registrations:
    """The registrations of one process."""

    def __init__(self, valkey: Valkey, database: Database, process: str, *, void_after_s: float) -> None:
        self.needed = asyncio.Event()
        """Set when keys of this process may be missing in Valkey: it was unavailable, or has lost its data."""
        self._valkey = valkey
        self._database = database
        self._process = process
        self._void_after_s = void_after_s
        self._groups = {
            tag: _Group([valkey.key(tag, "registrations"), valkey.key(tag, "registered")]) for tag in valkey.groups
        }
        self._incomplete = set(self._groups)

    def registered_key(self, app_id: str, user_id: str) -> str:
        """Return the key of the run id of the Valkey in which all live processes have registered their streams."""
        return self._groups[self._valkey.group_of(app_id, user_id)].registered_key

    def registered_in(self, app_id: str, user_id: str) -> str:
        """Return the run id of the Valkey that has all streams of this process, or an empty string.

        All streams are registered in it as long as `registered_key` has the same value. A flush removes that key,
        and a restart changes the run id. Both count until all live processes have registered their streams again.
        """
        tag = self._valkey.group_of(app_id, user_id)
        group = self._groups[tag]
        if tag in self._incomplete or self._valkey.losses(group.registered_key) != group.losses:
            return ""
        return group.run_id

    def lose(self, app_id: str, user_id: str) -> None:
        """Have the streams of a user's group registered again, because a key may not have reached Valkey."""
        self._lose([self._valkey.group_of(app_id, user_id)])

    def lose_all(self) -> None:
        self._lose(self._groups)

    async def check(self) -> None:
        """Find groups whose keys Valkey may have lost since they were registered. Raises `VALKEY_ERRORS`."""
        groups = list(self._groups.items())
        calls = (self._valkey.call("GET", group.registered_key) for _, group in groups)
        answers = await asyncio.gather(*calls, return_exceptions=True)
        self._lose(
            tag
            for (tag, group), answer in zip(groups, answers, strict=True)
            if isinstance(answer, BaseException)
            or self._valkey.losses(group.registered_key) != group.losses
            or (answer or b"").decode() != group.run_id
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def begin(self) -> dict[str, str]:
        """Begin to register all incomplete groups. Returns the run id of each group whose slot is available."""
        self.needed.clear()
        tags, begun = sorted(self._incomplete), dict[str, str]()
        self._incomplete.clear()  # A loss from now on makes a group incomplete again.
        for tag in tags:
            group = self._groups[tag]
            group.run_id, group.losses = "", self._valkey.losses(group.registered_key)
        calls = (self._valkey.run("register", keys=self._groups[tag].keys, args=[self._process]) for tag in tags)
        for tag, answer in zip(tags, await asyncio.gather(*calls, return_exceptions=True), strict=True):
            if isinstance(answer, VALKEY_ERRORS):
                log.debug("streams.not_registered", group=tag, error=str(store_error(answer)))
                self._lose([tag])
            elif isinstance(answer, BaseException):
                raise answer
            else:
                begun[tag] = answer.decode()
                group = self._groups[tag]
                if group.losses is None:  # It was the first command to the slot.
                    group.losses = self._valkey.losses(group.registered_key)
        return begun

    async def finish(self, begun: dict[str, str], *, failed: Collection[str]) -> bool:
        """Finish the registrations that have begun and not failed. Returns whether all groups are complete.

        The live processes are read after the beginning: if Valkey loses its keys after that, this registration is
        among them and does not count. Raises `StoreError` if PostgreSQL is unavailable.
        """
        tags = [tag for tag in begun if tag not in failed]
        try:
            with map_errors():
                async with asyncio.timeout(_READ_S), self._database.connection() as conn:
                    alive = await rows.all_alive(conn, void_after_s=self._void_after_s)
        except BaseException:
            self._lose(begun)
            raise
        calls = (
            self._valkey.run("register", keys=self._groups[tag].keys, args=[self._process, begun[tag], *alive])
            for tag in tags
        )
        for tag, answer in zip(tags, await asyncio.gather(*calls, return_exceptions=True), strict=True):
            if isinstance(answer, bytes) and answer:
                self._groups[tag].run_id = answer.decode()
            else:  # Valkey is unavailable, or lost its keys while the streams were registered.
                log.debug("streams.not_registered", group=tag, error=str(answer))
                self._lose([tag])
        self._lose(failed)
        return not self._incomplete

    async def forget(self, processes: Iterable[str]) -> None:
        """Remove the registrations of processes that have ended. Raises `VALKEY_ERRORS`."""
        if gone := list(processes):
            calls = (self._valkey.call("HDEL", group.keys[0], *gone) for group in self._groups.values())
            await asyncio.gather(*calls)

    def _lose(self, tags: Iterable[str]) -> None:
        self._incomplete.update(tags)
        if self._incomplete:
            self.needed.set()
