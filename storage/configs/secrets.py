"""Secrets in config values: encrypted in the database, masked in API responses.

An opened value is plain JSON with a `SecretStr` for each secret.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import SecretStr

from storage.configs.rows import ConfigKey, Revision
from storage.secrets import DecryptionFailed, Keyring

MARK = {"secret": True}
"""Replaces each secret in a masked value. If a value with this mark is written, the stored secret is kept."""

_Path = tuple[str | int, ...]
_LEFT_OUT = object()
_IDENTITIES = ("id", "kid", "name")
"""Fields that identify an item of a list, independent of its position."""


def mask_secrets(value: Any) -> Any:
    """Return `value` with each secret replaced by `MARK`."""
    return _replace(value, lambda _, item: MARK if isinstance(item, SecretStr) else item)


def encrypt_secrets(keyring: Keyring, key: ConfigKey, value: Any) -> tuple[Any, dict[str, str]]:
    """Return the masked value and a dictionary from JSON Pointer to encrypted secret.

    An encrypted secret can only be decrypted for the same config and pointer.
    """
    encrypted: dict[str, str] = {}

    def encrypt(path: _Path, item: Any) -> Any:
        if not isinstance(item, SecretStr):
            return item
        pointer = _pointer(path)
        encrypted[pointer] = keyring.encrypt(item.get_secret_value(), aad=_aad(key, pointer))
        return MARK

    return _replace(value, encrypt), encrypted


def decrypt_secrets(keyring: Keyring, stored: Revision) -> tuple[Any, list[str]]:
    """Return the value with its secrets, and the paths of secrets that no key decrypts; those remain masked."""
    refused: list[str] = []

    def decrypt(path: _Path, item: Any) -> Any:
        pointer = _pointer(path)
        if pointer not in stored.secrets:
            return item
        try:
            plain = keyring.decrypt(stored.secrets[pointer], aad=_aad(stored.key, pointer))
        except DecryptionFailed:
            refused.append(_dotted(path))
            return item
        return SecretStr(plain)

    return _replace(stored.value, decrypt), refused


def remove_secrets(stored: Revision) -> tuple[Any, list[str]]:
    """Return the value without its secrets, and their paths.

    A secret that is an item of a list is masked instead of removed, so that other items keep their positions.
    """
    paths: list[str] = []

    def leave_out(path: _Path, item: Any) -> Any:
        if _pointer(path) in stored.secrets:
            paths.append(_dotted(path))
            return item if isinstance(path[-1], int) else _LEFT_OUT
        return item

    return _replace(stored.value, leave_out), paths


def restore_secrets(value: Any, stored: Any, *, add_missing: bool = False) -> Any:
    """Return `value` with each `MARK` replaced by the secret from `stored`, an opened value.

    With `add_missing`, secrets missing from `value` are added too. Items of a list are matched by an identifying
    field if they have one, otherwise by position.
    """
    if value == MARK and isinstance(stored, SecretStr):
        return stored
    if isinstance(value, dict) and isinstance(stored, dict):
        result = {
            key: restore_secrets(item, stored.get(key), add_missing=add_missing) for key, item in value.items()
        }
        if add_missing:
            result = {key: item for key, item in stored.items() if _is_secret(item)} | result
        return result
    if isinstance(value, list) and isinstance(stored, list):
        return [
            restore_secrets(item, _counterpart(index, item, stored), add_missing=add_missing)
            for index, item in enumerate(value)
        ]
    return value


def kept_secrets(value: Any, restored: Any, path: _Path = ()) -> Iterator[str]:
    """Yield the paths of the secrets in `restored` that `restore_secrets` has taken from the stored value."""
    if isinstance(restored, SecretStr):
        if value is None or value == MARK:
            yield _dotted(path)
    elif isinstance(restored, dict) and isinstance(value, dict):
        for key, item in restored.items():
            yield from kept_secrets(value.get(key), item, (*path, key))
    elif isinstance(restored, list):
        for index, item in enumerate(restored):
            yield from kept_secrets(value[index], item, (*path, index))


def _is_secret(item: Any) -> bool:
    return isinstance(item, SecretStr) or item == MARK


def _counterpart(index: int, item: Any, stored: list[Any]) -> Any:
    if isinstance(item, dict):
        for field in _IDENTITIES:
            if field in item:
                matches = (other for other in stored if isinstance(other, dict) and other.get(field) == item[field])
                return next(matches, None)
    return stored[index] if index < len(stored) else None


def _aad(key: ConfigKey, pointer: str) -> str:
    return "/".join(key) + pointer


def _replace(value: Any, replace: Callable[[_Path, Any], Any], path: _Path = ()) -> Any:
    """Return `value` with each item replaced by `replace(path, item)`. Replaced items are not descended into."""
    replacement = replace(path, value)
    if replacement is not value:
        return replacement
    if isinstance(value, dict):
        inner = {key: _replace(item, replace, (*path, key)) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not _LEFT_OUT}
    if isinstance(value, list):
        return [_replace(item, replace, (*path, index)) for index, item in enumerate(value)]
    return value


def _pointer(path: _Path) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _dotted(path: _Path) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
