"""The transaction that changes configs."""

from dataclasses import dataclass
from typing import Any, Literal

from storage.configs import rows
from storage.configs.differences import differences
from storage.configs.kinds.apps import APPS
from storage.configs.rows import ConfigKey, Revision
from storage.configs.rules import DEFAULT, Accepted, Fault, Rules, Unknown
from storage.configs.secrets import decrypt_secrets, encrypt_secrets
from storage.errors import ConfigExists, ConfigNotFound, RevisionNotActive, RevisionNotFound
from storage.operators.audit import Action, Origin, Subject, record_change
from storage.postgres.database import Connection
from streams.wire.errors import AppNotFound, InvalidParameter

ABSENT_CONFIG = 0
"""An `if_match` that matches only a config that does not exist, or is deleted. Revisions begin at 1."""


@dataclass(frozen=True, slots=True)
class Change:
    """The result of `Edit.converge`. `fields` are the paths whose values changed.

    `kept` means that another author wrote the active value, which was not changed. `warnings` are the warnings of
    the value that was to be written, even if it is unchanged.
    """

    key: ConfigKey
    outcome: Literal["added", "changed", "unchanged", "kept"]
    fields: tuple[str, ...] = ()
    warnings: tuple[Fault, ...] = ()


class Edit:
    """Changes to configs in one transaction, by one author. Each is recorded in the audit log."""

    def __init__(self, conn: Connection, rules: Rules, *, author: str, origin: Origin) -> None:
        self._conn = conn
        self._rules = rules
        self._author = author
        self._origin = origin
        self.written: list[tuple[ConfigKey, int]] = []

    async def put(
        self, key: ConfigKey, value: Any, *, comment: str = "", if_match: int | None = None, strict: bool = False
    ) -> int:
        """Make `value` active and return its revision. A secret is kept where `value` holds `MARK`.

        `if_match` is the revision that must be active, or `ABSENT_CONFIG`.
        `strict` refuses a value that has warnings.
        """
        newest = await self._newest(key, if_match)
        accepted = await self._accepted(key, value, newest, strict=strict)
        return await self._write("config.put", key, newest, accepted.value, comment=comment)

    async def converge(
        self, key: ConfigKey, value: Any, *, keep_edited_by_others: bool = False, strict: bool = False
    ) -> Change:
        """Write `value` if it differs from the active value. Secrets missing from `value` are kept.

        `strict` refuses a value that has warnings, even if it is the active one.
        """
        newest = await self._newest(key)
        if newest is not None and keep_edited_by_others and newest.author != self._author:
            return Change(key, "kept")
        before = self._decrypted(newest)
        accepted = await self._accepted(key, value, newest, keep_missing=True, strict=strict)
        if before is None:
            await self._write("config.put", key, newest, accepted.value)
            return Change(key, "added", warnings=accepted.warnings)
        fields = tuple(difference.path for difference in differences(before, accepted.value))
        if not fields:
            return Change(key, "unchanged", warnings=accepted.warnings)
        await self._write("config.put", key, newest, accepted.value)
        return Change(key, "changed", fields, accepted.warnings)

    async def delete(self, key: ConfigKey, *, comment: str = "", if_match: int | None = None) -> int:
        newest = await self._newest(key, if_match)
        if newest is None or newest.deleted:
            raise ConfigNotFound(key.kind, key.name)
        return await self._append("config.delete", key, newest, value=None, secrets={}, comment=comment)

    async def rollback(
        self,
        key: ConfigKey,
        revision: int,
        *,
        comment: str = "",
        if_match: int | None = None,
        strict: bool = False,
    ) -> int:
        """Make the value of an old revision active again, as a new revision, and return its number.

        `strict` refuses a value that has warnings.
        """
        newest = await self._newest(key, if_match)
        old = await rows.revision_at(self._conn, key, revision=revision)
        if old is None:
            raise RevisionNotFound(key.kind, key.name, revision=revision)
        if old.deleted:
            raise InvalidParameter(f"revision {revision} is a deletion")
        # The old value may hold fields that the kind no longer has. Ignore them instead of refusing the value.
        accepted = await self._accepted(key, self._decrypted(old), old, unknown="ignore", strict=strict)
        comment = comment or f"rollback to revision {revision}"
        return await self._write("config.rollback", key, newest, accepted.value, comment=comment)

    async def _newest(self, key: ConfigKey, if_match: int | None = None) -> Revision | None:
        for fault in self._rules.name_faults(key):
            raise InvalidParameter(str(fault))
        newest = await rows.newest(self._conn, key)
        active = ABSENT_CONFIG if newest is None or newest.deleted else newest.revision
        if if_match not in (None, active):
            raise ConfigExists if if_match == ABSENT_CONFIG else RevisionNotActive
        return newest

    async def _accepted(
        self,
        key: ConfigKey,
        value: Any,
        stored: Revision | None,
        *,
        keep_missing: bool = False,
        unknown: Unknown = "forbid",
        strict: bool,
    ) -> Accepted:
        await self._require_app(key)
        judged = await self._rules.judge(
            self._conn, key, value, stored=self._decrypted(stored), keep_missing=keep_missing, unknown=unknown
        )
        if not isinstance(judged, Accepted):
            raise InvalidParameter(str(judged[0]))
        if strict and judged.warnings:
            raise InvalidParameter(str(judged.warnings[0]))
        return judged

    async def _require_app(self, key: ConfigKey) -> None:
        if key.kind == APPS.name:
            return
        app = await rows.newest(self._conn, ConfigKey(key.app_id, APPS.name, DEFAULT))
        if app is None or app.deleted:
            raise AppNotFound(f"app {key.app_id} does not exist")

    def _decrypted(self, revision: Revision | None) -> Any:
        return None if revision is None else decrypt_secrets(self._rules.keyring, revision)[0]

    async def _write(
        self, action: Action, key: ConfigKey, newest: Revision | None, value: Any, *, comment: str = ""
    ) -> int:
        masked_value, encrypted = encrypt_secrets(self._rules.keyring, key, value)
        return await self._append(action, key, newest, value=masked_value, secrets=encrypted, comment=comment)

    async def _append(
        self,
        action: Action,
        key: ConfigKey,
        newest: Revision | None,
        *,
        value: Any,
        secrets: dict[str, str],
        comment: str,
    ) -> int:
        revision = 1 if newest is None else newest.revision + 1
        await rows.append(
            self._conn,
            key,
            revision=revision,
            value=value,
            secrets=secrets,
            author=self._author,
            comment=comment,
        )
        await record_change(
            self._conn,
            self._origin.with_reason(comment),
            action=action,
            subject=Subject(*key),
            before=None if newest is None or newest.deleted else _recorded(newest.revision, newest.value),
            after=None if value is None else _recorded(revision, value),
        )
        self.written.append((key, revision))
        return revision


def _recorded(revision: int, masked_value: Any) -> dict[str, Any]:
    return {"revision": revision, "value": masked_value}
