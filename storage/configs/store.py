"""Named configs: typed and in memory for readers, versioned in PostgreSQL, synchronized between processes."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NoReturn

import structlog

from storage.configs import rows
from storage.configs.differences import Difference, differences
from storage.configs.edits import Edit
from storage.configs.kinds import KINDS
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.base import ConfigKind, ConfigModel
from storage.configs.references import may_name, references
from storage.configs.rows import ConfigFilter, ConfigKey, ConfigOrder, ListedConfig, Revision
from storage.configs.rules import DEFAULT, Accepted, Check, Fault, Rules, typed_value
from storage.configs.secrets import decrypt_secrets, mask_secrets
from storage.errors import ConfigNotFound, RevisionNotFound
from storage.operators.audit import Origin
from storage.postgres.database import Database
from storage.secrets import Keyring
from storage.valkey.change_feed import announce, following
from storage.valkey.client import Valkey
from streams.wire.errors import ConfigInvalid, DatabaseUnavailable, StoreError
from streams.wire.model import Model

log = structlog.get_logger()

_STALE_S = 10
_TOPIC = "configs"


@dataclass(frozen=True, slots=True)
class Active(Generic[ConfigModel]):
    """An active config. Immutable: a later revision is a new object."""

    value: ConfigModel
    revision: int


@dataclass(frozen=True, slots=True)
class _Broken:
    """An active config that cannot be used."""

    message: str


class ConfigStore:
    """All active configs of all apps. `get`, `singleton` and the other synchronous methods read from memory."""

    def __init__(self, database: Database, valkey: Valkey, rules: Rules, *, clock: Callable[[], float]) -> None:
        self._database = database
        self._valkey = valkey
        self._rules = rules
        self._entries: dict[ConfigKey, Active[Any] | _Broken] = {}
        self._undecryptable: set[ConfigKey] = set()
        """The active configs with secrets of a master key that this process does not have."""
        self._unreadable_since: float | None = None
        self._defaults = {name: _entry(typed_value(kind, {}), revision=0) for name, kind in rules.kinds.items()}
        self._refreshing = asyncio.Lock()
        self._clock = clock
        self._fresh_at = clock()
        self.version = 0
        """Number of the last change that this process has applied."""

    def exists(self, kind: ConfigKind[Any], app_id: str, name: str = DEFAULT) -> bool:
        return (app_id, kind.name, name) in self._entries

    def apps(self) -> list[str]:
        """Return the ids of all apps of this deployment, sorted."""
        return sorted(key.app_id for key in self._entries if key.kind == APPS.name)

    async def all_apps(self) -> dict[str, datetime | None]:
        """Read the ids of all apps that have ever existed, with the time at which a deleted app was deleted."""
        async with self._database.connection() as conn:
            return await rows.all_apps(conn)

    def names(self, kind: ConfigKind[Any], app_id: str) -> list[str]:
        """Return the sorted names of an app's configs of one kind, including invalid ones."""
        return sorted(key.name for key in self._entries if key.app_id == app_id and key.kind == kind.name)

    def get(self, kind: ConfigKind[ConfigModel], app_id: str, name: str) -> Active[ConfigModel]:
        """Return the active config.

        Raises `ConfigNotFound` if it does not exist and `ConfigInvalid` if its value does not fit the kind.
        """
        key = ConfigKey(app_id, kind.name, name)
        _record(key)
        entry = self._entries.get(key)
        if entry is None:
            raise ConfigNotFound(key.kind, key.name)
        if isinstance(entry, _Broken):
            _refuse(key, entry)
        return entry

    def required(self, kind: ConfigKind[ConfigModel], app_id: str, name: str) -> Active[ConfigModel]:
        """Return the active config. Raises `ConfigInvalid` if it does not exist or cannot be used."""
        try:
            return self.get(kind, app_id, name)
        except ConfigNotFound as error:
            raise ConfigInvalid(error.what) from None

    def singleton(self, kind: ConfigKind[ConfigModel], app_id: str) -> ConfigModel:
        """Return the config named `default`, or the defaults of the kind if the app has no such config."""
        key = ConfigKey(app_id, kind.name, DEFAULT)
        entry: Active[ConfigModel] | _Broken = self._entries.get(key) or self._defaults[kind.name]
        if isinstance(entry, _Broken):
            _record(key)
            _refuse(key, entry)
        return entry.value

    def broken(self) -> list[ConfigKey]:
        """Return the active configs that cannot be used, sorted."""
        return sorted(key for key, entry in self._entries.items() if isinstance(entry, _Broken))

    def fault(self, key: ConfigKey) -> str | None:
        """Return why an active config cannot be used, or `None` if it can."""
        entry = self._entries.get(key)
        return entry.message if isinstance(entry, _Broken) else None

    def warnings(self, key: ConfigKey) -> list[Fault]:
        """Return probable mistakes in a valid active config, such as the name of a missing config."""
        entry = self._entries.get(key)
        if not isinstance(entry, Active):
            return []
        named = {}
        for reference in references(entry.value):
            found = self._entries.get(ConfigKey(key.app_id, reference.kind, reference.name))
            if found is not None:
                named[reference.kind, reference.name] = found.value if isinstance(found, Active) else None
        return self._rules.warnings(key, entry.value, named)

    def named_by(self, key: ConfigKey) -> list[ConfigKey]:
        """Return the usable active configs of the app that name a config, sorted."""
        kinds = {name for name, kind in self._rules.kinds.items() if may_name(kind.model, key.kind)}
        return sorted(
            {
                other
                for other, entry in self._entries.items()
                if other.app_id == key.app_id and other.kind in kinds and isinstance(entry, Active)
                for reference in references(entry.value)
                if (reference.kind, reference.name) == (key.kind, key.name)
            }
        )

    @asynccontextmanager
    async def editing(self, *, author: str, origin: Origin, dry_run: bool = False) -> AsyncIterator[Edit]:
        """Run one transaction of changes. Only one runs at a time among all processes.

        This process reads the new values as soon as the block has ended. `dry_run` rolls the changes back. `author`
        is stored in the revisions, and `origin` in the audit log.
        """
        with suppress(_Undone):
            async with self._database.transaction() as conn:
                await rows.lock_changes(conn)
                edit = Edit(conn, self._rules, author=author, origin=origin)
                yield edit
                if dry_run:
                    raise _Undone
            await self._announce(edit, author=author)

    async def put(
        self,
        app_id: str,
        kind: str,
        name: str,
        value: Any,
        *,
        author: str,
        origin: Origin,
        comment: str = "",
        if_match: int | None = None,
        strict: bool = False,
    ) -> int:
        """Make `value` active and return its revision. Raises `InvalidParameter`, which names the invalid field.

        `strict` refuses a value that has warnings.
        """
        key = ConfigKey(app_id, kind, name)
        async with self.editing(author=author, origin=origin) as edit:
            return await edit.put(key, value, comment=comment, if_match=if_match, strict=strict)

    async def delete(
        self,
        key: ConfigKey,
        *,
        author: str,
        origin: Origin,
        comment: str = "",
        if_match: int | None = None,
    ) -> int:
        async with self.editing(author=author, origin=origin) as edit:
            return await edit.delete(key, comment=comment, if_match=if_match)

    async def rollback(
        self,
        key: ConfigKey,
        revision: int,
        *,
        author: str,
        origin: Origin,
        comment: str = "",
        if_match: int | None = None,
        strict: bool = False,
    ) -> int:
        async with self.editing(author=author, origin=origin) as edit:
            return await edit.rollback(key, revision, comment=comment, if_match=if_match, strict=strict)

    async def read(self, key: ConfigKey, *, revision: int | None = None) -> Revision:
        """Return the active revision, or revision number `revision`, with secrets masked."""
        self._rules.kind(key)
        async with self._database.connection() as conn:
            if revision is None:
                row = await rows.newest(conn, key)
            else:
                row = await rows.revision_at(conn, key, revision=revision)
        if row is None or row.deleted:
            if revision is None:
                raise ConfigNotFound(key.kind, key.name)
            raise RevisionNotFound(key.kind, key.name, revision=revision)
        return row

    async def overview(self, *, app_id: str | None = None, kind: str | None = None) -> list[Revision]:
        """Return the active revisions, optionally of one app or one kind only."""
        async with self._database.connection() as conn:
            return await rows.active(conn, app_id, kind=kind)

    async def listed(
        self, which: ConfigFilter, *, order: ConfigOrder, offset: int = 0, size: int | None = None
    ) -> list[ListedConfig]:
        """Return active configs without their values. `size`: at most so many; `None`: all."""
        async with self._database.connection() as conn:
            return await rows.listed(conn, which, order=order, offset=offset, size=size)

    async def count(self, which: ConfigFilter) -> int:
        """Return the number of active configs."""
        async with self._database.connection() as conn:
            return await rows.count(conn, which)

    async def history(self, key: ConfigKey, *, before: int | None = None, limit: int = 100) -> list[Revision]:
        """Return revisions, newest first, including deletions."""
        self._rules.kind(key)
        async with self._database.connection() as conn:
            revisions = await rows.history(conn, key, before=before, limit=limit)
            if not revisions and await rows.newest(conn, key) is None:
                raise ConfigNotFound(key.kind, key.name)
        return revisions

    async def diff(self, key: ConfigKey, *, before: int, after: int) -> list[Difference]:
        """Return the differences between two revisions. Secrets are compared in plain text and returned masked."""
        sides = []
        async with self._database.connection() as conn:
            for revision in (before, after):
                row = await rows.revision_at(conn, key, revision=revision)
                if row is None:
                    raise RevisionNotFound(key.kind, key.name, revision=revision)
                sides.append({} if row.deleted else decrypt_secrets(self._rules.keyring, row)[0])
        return [
            Difference(difference.path, mask_secrets(difference.before), mask_secrets(difference.after))
            for difference in differences(sides[0], sides[1])
        ]

    async def judge(self, key: ConfigKey, value: Any) -> Accepted | list[Fault]:
        """Return what `put` would store, or all faults for which it would refuse `value`."""
        wrong_name = list(self._rules.name_faults(key))
        async with self._database.connection() as conn:
            newest = await rows.newest(conn, key)
            stored = None if newest is None else decrypt_secrets(self._rules.keyring, newest)[0]
            judged = await self._rules.judge(conn, key, value, stored=stored)
        if wrong_name:
            return wrong_name if isinstance(judged, Accepted) else [*wrong_name, *judged]
        return judged

    async def refresh(self) -> None:
        """Apply all changes since the last refresh."""
        async with self._refreshing, self._database.connection() as conn:
            for change, revision in await rows.changed_since(conn, self.version):
                self._apply_revision(revision)
                self.version = change
            self._fresh_at = self._clock()
            self._report_secrets()

    async def ping(self) -> None:
        """Raise `StoreError` if configs were not refreshed recently, so that this process may use outdated ones."""
        age_s = self._clock() - self._fresh_at
        if age_s > _STALE_S:
            raise DatabaseUnavailable(f"configs were last read {age_s:.0f} s ago")

    def undecryptable(self) -> list[ConfigKey]:
        """Return the active configs with secrets of a master key that this process does not have, sorted."""
        return sorted(self._undecryptable)

    async def check_secrets(self) -> None:
        """Raise `ConfigInvalid` if this process does not have the master key of each config."""
        if count := len(self._undecryptable):
            raise ConfigInvalid(f"PARLEY_MASTER_KEY lacks the key of {count} config{'s' * (count > 1)}")

    def _apply_revision(self, revision: Revision) -> None:
        key = revision.key
        if key.kind not in self._rules.kinds:  # A newer version of this server wrote it.
            return
        self._undecryptable.discard(key)
        if revision.deleted:
            self._entries.pop(key, None)
            return
        if not self._rules.has_keys_of(revision):
            self._undecryptable.add(key)
        entry = _entry(self._rules.read(revision), revision=revision.revision)
        if isinstance(entry, _Broken):
            log.error("config.broken", app_id=key.app_id, kind=key.kind, name=key.name, error=entry.message)
        self._entries[key] = entry

    def _report_secrets(self) -> None:
        """Log when secrets cannot be read any more, and when all of them can be read again."""
        if self._undecryptable and self._unreadable_since is None:
            self._unreadable_since = self._clock()
            log.error("secrets.unreadable", configs=len(self._undecryptable), cause="their master key is missing")
        elif not self._undecryptable and self._unreadable_since is not None:
            log.info("secrets.readable", away_s=round(self._clock() - self._unreadable_since, 1))
            self._unreadable_since = None

    async def _announce(self, edit: Edit, *, author: str) -> None:
        """Refresh this process and notify the others. On failure, they notice the change at their next poll."""
        if not edit.written:
            return
        for key, revision in edit.written:
            log.info("config.written", **key._asdict(), revision=revision, author=author)
        with suppress(StoreError):
            await self.refresh()
        await announce(self._valkey, topic=_TOPIC)


@asynccontextmanager
async def open_configs(
    database: Database,
    valkey: Valkey,
    keyring: Keyring,
    *,
    kinds: Mapping[str, ConfigKind[Any]] = KINDS,
    check: Check | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[ConfigStore]:
    """Yield the store of all configs and keep it up to date during the block.

    `check` validates values in addition to the models of `kinds`.
    """
    store = ConfigStore(database, valkey, Rules(kinds, keyring, check), clock=clock)
    await store.refresh()
    async with following(valkey, store.refresh, topic=_TOPIC):
        yield store


class _Undone(Exception):
    """Rolls back the transaction of a dry run."""


def _entry(value: Model | str, *, revision: int) -> Active[Any] | _Broken:
    return _Broken(value) if isinstance(value, str) else Active(value, revision)


_USED: ContextVar[dict[ConfigKey, None] | None] = ContextVar("configs_used", default=None)


@contextmanager
def recorded_configs() -> Iterator[dict[ConfigKey, None]]:
    """Yield the keys of the configs that the block reads by name, in the order in which they were last read.

    With them, the failure of a job names its configs. Those that every request reads, such as the limits of an app,
    are not among them unless they cannot be used.
    """
    used: dict[ConfigKey, None] = {}
    token = _USED.set(used)
    try:
        yield used
    finally:
        _USED.reset(token)


def _record(key: ConfigKey) -> None:
    if (used := _USED.get()) is not None:
        used.pop(key, None)
        used[key] = None


def _refuse(key: ConfigKey, entry: _Broken) -> NoReturn:
    raise ConfigInvalid(f"{key.kind} {key.name}: {entry.message}")
