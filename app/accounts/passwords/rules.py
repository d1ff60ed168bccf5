"""The rules for new passwords: their length, and the refusal of common ones."""

import gzip
import unicodedata
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from storage.configs.kinds.auth import Auth
from streams.wire.errors import InvalidParameter

MAX_CHARACTERS = 256
_COMMON = Path(__file__).parent / "common_passwords" / "passwords.txt.gz"


def _not_too_long(password: SecretStr) -> SecretStr:
    if len(password) > MAX_CHARACTERS:
        raise ValueError(f"must be at most {MAX_CHARACTERS} characters")
    return password


Password = Annotated[
    SecretStr, AfterValidator(_not_too_long), Field(json_schema_extra={"maxLength": MAX_CHARACTERS})
]
"""A password in a request. It is not shown in errors, nor in log lines."""


def check_password(password: str, config: Auth, *, field: str) -> None:
    """Raise `InvalidParameter`, which names `field`, if the app does not accept a new password."""
    rules = config.password
    if len(password) < rules.min_characters:
        raise InvalidParameter(f"{field} must be at least {rules.min_characters} characters")
    if len(password) > MAX_CHARACTERS:
        raise InvalidParameter(f"{field} must be at most {MAX_CHARACTERS} characters")
    if rules.refuse_common and _is_common(password, config):
        raise InvalidParameter(f"{field} is a common password: choose one that is harder to guess")


def _is_common(password: str, config: Auth) -> bool:
    folded = _folded(password)
    return folded in _common_passwords() or folded in map(_folded, config.common_passwords)


def _folded(password: str) -> str:
    return unicodedata.normalize("NFKC", password).casefold()


@cache
def _common_passwords() -> frozenset[str]:
    """Return the most common passwords with eight characters or more, case-folded. Reading them takes 4 ms."""
    return frozenset(gzip.decompress(_COMMON.read_bytes()).decode().split())
