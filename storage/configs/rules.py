"""Validation of configs: by the model of their kind, by the configs that they name, and by a further check."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from storage.configs import rows
from storage.configs.kinds.base import ConfigKind
from storage.configs.references import references
from storage.configs.rows import ConfigKey, Revision
from storage.configs.secrets import MARK, decrypt_secrets, kept_secrets, restore_secrets
from storage.errors import ConfigKindNotFound
from storage.postgres.database import Connection
from storage.secrets import Keyring
from streams.wire.model import Model, faults

DEFAULT = "default"
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,64}")
Unknown = Literal["forbid", "ignore"]
"""How to treat fields that a model does not have."""


@dataclass(frozen=True, slots=True)
class Fault:
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'value'} {self.message}"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A valid value, without defaults and with opened secrets. `warnings` name probable mistakes in it."""

    value: Any
    warnings: tuple[Fault, ...]


Named = Mapping[tuple[str, str], Model | None]
"""The existing configs that a value names, by kind and name. An invalid one is `None`."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check."""

    value: Model
    """The value to store."""
    faults: list[Fault] = field(default_factory=list)
    """Why it must not be written."""
    warnings: list[Fault] = field(default_factory=list)
    """Probable mistakes."""


Check = Callable[[ConfigKey, Model, Named, Unknown], Checked]
"""Checks the value of a config of any kind, given the configs that the value names."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Validates values, with the config kinds, an optional further check, and the keyring for secrets."""

    kinds: Mapping[str, ConfigKind[Any]]
    keyring: Keyring
    check: Check | None = None

    def kind(self, key: ConfigKey) -> ConfigKind[Any]:
        kind = self.kinds.get(key.kind)
        if kind is None:
            raise ConfigKindNotFound(key.kind)
        return kind

    def name_faults(self, key: ConfigKey) -> Iterable[Fault]:
        """Yield the reasons why no config can have the app and the name of `key`."""
        kind = self.kind(key)
        for part, text in (("app", key.app_id), ("name", key.name)):
            if _NAME.fullmatch(text) is None:
                yield Fault(part, "must be 1 to 64 of A-Z a-z 0-9 . _ - and not begin with a dot")
        if kind.singleton and key.name != DEFAULT:
            yield Fault("name", f"must be {DEFAULT}: an app has one config of kind {kind.name}")
        if kind.names and key.name not in kind.names:
            yield Fault("name", f"must be one of {', '.join(kind.names)}")

    async def judge(
        self,
        conn: Connection,
        key: ConfigKey,
        value: Any,
        *,
        stored: Any,
        keep_missing: bool = False,
        unknown: Unknown = "forbid",
    ) -> Accepted | list[Fault]:
        """Validate a value that is to be written. Return the value to store, or all its faults.

        Secrets are kept from `stored`, an opened value, where `value` holds `MARK` and, with `keep_missing`, where
        it has none.
        """
        restored = restore_secrets(value, stored, add_missing=keep_missing)
        try:
            typed: Model = self.kind(key).model.model_validate(restored, extra=unknown)
        except ValidationError as error:
            marked = _marked(restored)
            return [
                Fault(path, "has no stored secret to keep" if path in marked else message)
                for path, message in faults(error)
            ]
        named = await self._named(conn, key.app_id, typed)
        checked = self._checked(key, typed, named, unknown)
        accepted = checked.value.model_dump(exclude_unset=True, by_alias=True)
        kept = kept_secrets(value, restored)
        if found := [*checked.faults, *_sent_elsewhere(self.kind(key), kept, stored, accepted)]:
            return found
        return Accepted(accepted, (*_missing(checked.value, named), *checked.warnings))

    def warnings(self, key: ConfigKey, value: Model, named: Named) -> list[Fault]:
        """Return the reasons why a stored value cannot be used, and probable mistakes in it."""
        checked = self._checked(key, value, named, "ignore")
        return [*_missing(value, named), *checked.faults, *checked.warnings]

    def read(self, revision: Revision) -> Model | str:
        """Return the typed value of a stored revision, or why it cannot be used."""
        value, refused = decrypt_secrets(self.keyring, revision)
        if refused:
            return f"{refused[0]} cannot be decrypted"
        return typed_value(self.kind(revision.key), value)

    def has_keys_of(self, revision: Revision) -> bool:
        """Return whether this process has the master keys of all secrets of a revision."""
        return all(map(self.keyring.has_key_of, revision.secrets.values()))

    def _checked(self, key: ConfigKey, value: Model, named: Named, unknown: Unknown) -> Checked:
        return Checked(value) if self.check is None else self.check(key, value, named, unknown)

    async def _named(self, conn: Connection, app_id: str, value: Model) -> Named:
        named: dict[tuple[str, str], Model | None] = {}
        for kind, name in {(reference.kind, reference.name) for reference in references(value)}:
            row = await rows.newest(conn, ConfigKey(app_id, kind, name))
            if row is not None and not row.deleted:
                found = self.read(row)
                named[kind, name] = None if isinstance(found, str) else found
        return named


def typed_value(kind: ConfigKind[Any], value: Any) -> Model | str:
    """Return the model of a stored value, or why it does not fit the kind."""
    try:
        model: Model = kind.model.model_validate(value)
    except ValidationError as error:
        path, message = next(faults(error))
        return f"{path or 'value'} {message}"
    return model


def _missing(value: Model, named: Named) -> Iterable[Fault]:
    for reference in references(value):
        if (reference.kind, reference.name) not in named:
            yield Fault(reference.path, f"names {reference.kind} {reference.name}, which does not exist")


def _sent_elsewhere(kind: ConfigKind[Any], kept: Iterable[str], before: Any, after: Any) -> Iterable[Fault]:
    """Yield the kept secrets if they would be sent to another address: whoever chose that would learn them."""

    def address(value: Any, name: str) -> Any:
        return value.get(name, kind.model.model_fields[name].default)

    for path in kept:
        changed = [name for name in kind.addresses if address(before, name) != address(after, name)]
        if changed:
            have = "has" if len(changed) == 1 else "have"
            yield Fault(path, f"must be given again, because {' and '.join(changed)} {have} changed")


def _marked(value: Any, path: str = "") -> set[str]:
    """Return the paths at which `value` still holds `MARK`."""
    if value == MARK:
        return {path}
    if isinstance(value, dict):
        inner = ((f"{path}.{key}" if path else str(key), item) for key, item in value.items())
    elif isinstance(value, list):
        inner = ((f"{path}[{index}]", item) for index, item in enumerate(value))
    else:
        return set()
    return set().union(*(_marked(item, at) for at, item in inner))
