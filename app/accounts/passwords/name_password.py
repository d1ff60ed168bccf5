"""The platform `name_password`: names, and logins with them (§2.2)."""

import unicodedata

from pydantic import Field

from app.accounts.passwords.passwords import prove_by_password
from app.accounts.passwords.rules import Password
from app.accounts.proofs import trace
from app.accounts.proofs.proofs import Proven
from app.http.rows.endpoint import Call
from storage.accounts.identities import Identity
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model

PLATFORM = "name_password"
_MIN_CHARACTERS, _MAX_CHARACTERS = 3, 64
_MAX_SENT_CHARACTERS = 256
_MARKS = frozenset("._-")


class NamePassword(Model):
    """The name and the password of a user."""

    name: str = Field(max_length=_MAX_SENT_CHARACTERS)
    """3 to 64 letters, digits, `.`, `_` and `-`, after normalization. Case does not matter."""
    password: Password


def fold_name(name: str) -> str:
    """Return the normalized name without case (NFKC and case folding). Names are unique in this form."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def display_name(name: str) -> str:
    """Return the normalized name (NFKC) with its case, for display."""
    return unicodedata.normalize("NFKC", name)


def check_name(name: str) -> None:
    """Raise `InvalidParameter` if a user cannot have this folded name."""
    if not _MIN_CHARACTERS <= len(name) <= _MAX_CHARACTERS:
        raise InvalidParameter(f"name_password.name must be {_MIN_CHARACTERS} to {_MAX_CHARACTERS} characters")
    if not all(char in _MARKS or unicodedata.category(char)[0] == "L" or char.isdecimal() for char in name):
        raise InvalidParameter("name_password.name must contain only letters, digits, '.', '_' and '-'")


def claimed_name(_call: Call, info: NamePassword) -> str:
    """Return the folded name of a login, or an empty string if it is not a possible name."""
    name = fold_name(info.name)
    try:
        check_name(name)
    except InvalidParameter:
        return ""
    return name


async def prove_name_password(call: Call, info: NamePassword) -> Proven:
    """Check a name and a password. A name that no user can have gets the same error as an unknown one."""
    if not claimed_name(call, info):
        trace.step(
            call, "name", seen="one that no user can have", allowed="3 to 64 letters, digits, '.', '_' and '-'"
        )
    return await prove_by_password(call, Identity(call.app_id, PLATFORM, fold_name(info.name)), info.password)
