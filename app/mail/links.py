"""The links in emails to this server: the tracking pixel, and the page for unsubscribing."""

from typing import NamedTuple
from urllib.parse import quote, urlencode

from app.http.links import public_link
from app.services import Services
from storage.configs.kinds.apps import APPS
from storage.secrets import DecryptionFailed
from streams.wire.codec import dumps, loads
from streams.wire.errors import InvalidParameter

PIXEL_PATH = "/bp/res/i.gif"
UNSUBSCRIBE_PATH = "/bp/res/unsubscribe"
_AAD = "mail/unsubscribe"


class Subscription(NamedTuple):
    """The content of the token in a link: a strategy, and the address to which it sends emails."""

    app_id: str
    address: str
    strategy: str


def pixel_url(services: Services, uid: str, *, mail_id: str, to: str) -> str:
    """Return the URL of the tracking pixel of an email. Raises `ConfigInvalid` without a public URL."""
    return public_link(services, f"{PIXEL_PATH}?{urlencode({'e': to, 'mid': mail_id, 'u': uid})}")


def unsubscribe_url(services: Services, subscription: Subscription) -> str:
    """Return a URL that only this server can make. It does not expire, because links in old emails must work."""
    token = services.keyring.encrypt(dumps([*subscription]).decode(), aad=_AAD)
    return public_link(services, f"{UNSUBSCRIBE_PATH}?token={quote(token)}")


def read_token(services: Services, token: str) -> Subscription:
    """Return the content of a token. Raises `InvalidParameter`."""
    try:
        named = Subscription(*loads(services.keyring.decrypt(token, aad=_AAD)))
    except (DecryptionFailed, ValueError):
        raise InvalidParameter("token is not valid") from None
    if not services.configs.exists(APPS, named.app_id):
        raise InvalidParameter("the app of the token does not exist any more")
    return named
