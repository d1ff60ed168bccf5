"""The platform `name_password`: names, and logins with them (§2.2)."""

import unicodedata

from pydantic import Field

from app.accounts.password_rules import Password
from app.accounts.passwords import prove_by_password
from app.accounts.proofs import Proven
from app.http.endpoint import Call
from storage.identities import Identity
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model

PLATFORM = "name_password"
_SHORTEST, _LONGEST = 3, 64
_SENT_CHARACTERS = 256
_MARKS = frozenset("._-")


class NamePassword(Model):
    """The name and the password of a user."""

    name: str = Field(max_length=_SENT_CHARACTERS)
    """3 to 64 letters, digits, `.`, `_` and `-`. Case does not matter."""
    password: Password


def folded(name: str) -> str:
    """Return the form of a name by which it is unique: its compatible characters without case."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def shown(name: str) -> str:
    """Return the form of a name in which it is shown."""
    return unicodedata.normalize("NFKC", name)


def check_name(name: str) -> None:
    """Raise `InvalidParameter` if a folded name cannot be that of a user."""
    if not _SHORTEST <= len(name) <= _LONGEST:
        raise InvalidParameter(f"name_password.name must be {_SHORTEST} to {_LONGEST} characters")
    if not all(char in _MARKS or unicodedata.category(char)[0] == "L" or char.isdecimal() for char in name):
        raise InvalidParameter("name_password.name must contain only letters, digits, '.', '_' and '-'")


async def prove_name_password(call: Call, info: NamePassword) -> Proven:
    """Check a name and a password. A name that no user can have is refused as an unknown one."""
    return await prove_by_password(call, Identity(call.app_id, PLATFORM, folded(info.name)), info.password)
