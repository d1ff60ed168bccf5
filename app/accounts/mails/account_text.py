"""Describes an account, and who requested an email, so that the reader knows what its code or link is about.

If the button behind the link is the first proof of the address, it keeps the password, the identities and the
sessions of the account.
"""

from datetime import datetime
from typing import Literal

from app.accounts.mails.texts import account_texts, language_of
from app.accounts.proofs.addresses import ClientPlatform
from app.http.callers.addresses import client_network
from app.http.rows.endpoint import Call
from app.mail_urls import without_links
from storage.accounts import emails, users
from storage.postgres.database import Connection

_SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iOS",
    "iPad": "iOS",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}
"""Operating systems by a part of the `User-Agent`. The header itself is not shown, because clients choose its
text."""
_BY_PLATFORM = {"ios": "iOS", "android": "Android"}


async def account_text(
    call: Call, conn: Connection, uid: str, *, address: str, platform: ClientPlatform | None
) -> str:
    """Return a description of an account, and of where the email was requested, in the language of the request.

    The address of the email is not proven, so the name must not contain a link that a stranger wants its owner to
    open. `conn` is in the transaction that stores the email.
    """
    texts = account_texts(language_of(call.request))
    user = await users.find(conn, call.app_id, uid)
    assert user is not None, "the row of the user is locked, or new"
    is_its_own = (await emails.find(conn, call.app_id, uid)).current == address
    created = _shown(user.create_time)
    said = [texts["signed_up" if is_its_own else "existing"].format(created=created)]
    if user.name:
        said.append(texts["named"].format(name=without_links(user.name)))
    return " ".join([*said, request_text(call, platform)])


def request_text(
    call: Call, platform: ClientPlatform | None, *, what: Literal["requested", "changed"] = "requested"
) -> str:
    """Return when and from where an email was requested or an account was changed, in the reader's language."""
    texts, at = account_texts(language_of(call.request)), _shown(call.services.clock.now(call.app_id))
    system = _BY_PLATFORM.get(platform or "")
    if call.caller.server_key is not None:  # Its address and headers say nothing about the device of the user.
        return texts[f"{what}_by_server"].format(system=system or texts["unknown_system"], at=at)
    agent = call.request.headers.get("User-Agent", "")
    system = system or next((name for part, name in _SYSTEMS.items() if part in agent), texts["unknown_system"])
    network = client_network(call.request, call.services.settings.trusted_proxies)
    return texts[what].format(system=system, network=network, at=at)


def _shown(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
