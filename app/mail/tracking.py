"""The tracking pixel of emails (§4.15). Every request gets the same image, without waiting."""

from collections.abc import Mapping

from aiohttp import web

from app.http.callers.addresses import client_ip, peer_ip
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Query
from app.http.wire.direct import DirectAnswer, DirectRequest
from app.mail.links import PIXEL_PATH
from app.mail.machine_opens import is_machine
from app.services import Services
from storage.mail.opens import Open
from streams.wire.ids import is_id
from streams.wire.model import Model
from streams.wire.typed import plus_for_blank

IMAGE = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
"""A transparent GIF of one pixel."""
_HEADERS = {"Cache-Control": "no-store, no-cache, must-revalidate, max-age=0", "Pragma": "no-cache"}
_CHARACTERS = 512


class PixelQuery(Model):
    e: str = ""
    """The recipient."""
    email: str = ""
    """Alias of `e`."""
    mid: str = ""
    """The message id."""
    message_id: str = ""
    """Alias of `mid`."""
    u: str = ""
    """The user. Default: the user with the email address."""
    user_id: str = ""
    """Alias of `u`."""


async def pixel(call: Call, query: Query[PixelQuery]) -> web.Response:
    """Return the tracking image of an email.

    If the email was sent to the address, each request is reported to the sinks of its app as an event
    `email_operation`. Other requests get the image too.
    """
    request, trusted = call.request, call.services.settings.trusted_proxies
    opened = _opened(query.model_dump(), request.headers, ip=peer_ip(request, trusted))
    if opened is not None:
        call.services.opens.add(opened)
    return _image()


async def pixel_head(_: Call) -> web.Response:
    """Return the headers of the tracking image. This is not reported."""
    return _image()


def _image() -> web.Response:
    return web.Response(body=IMAGE, headers=_HEADERS, content_type="image/gif")


def _seen(services: Services, request: DirectRequest) -> None:
    headers = request.headers
    ip = client_ip(request.peer, [headers.get("x-forwarded-for", "")], services.settings.trusted_proxies)
    opened = _opened(request.query, headers, ip=ip)
    if opened is not None:
        services.opens.add(opened)


def _opened(query: Mapping[str, str], headers: Mapping[str, str], *, ip: str) -> Open | None:
    """Return the open that a request stands for, if it names an email."""
    email = plus_for_blank(_text(query, "e", "email")).lower()
    mail_id = _text(query, "mid", "message_id")
    if not (email and len(email) <= _CHARACTERS and is_id(mail_id)):
        return None
    user_agent = headers.get("user-agent", "").encode(errors="replace").decode()[:_CHARACTERS]
    uid = _text(query, "u", "user_id")[:_CHARACTERS]
    machine = is_machine(user_agent, headers)
    return Open(email=email, mail_id=mail_id, uid=uid, user_agent=user_agent, ip=ip, machine=machine)


def _text(query: Mapping[str, str], name: str, long_name: str) -> str:
    """Return a parameter without the character U+0000, which PostgreSQL's `text` type cannot store."""
    return (query.get(name) or query.get(long_name, "")).replace("\0", "")


DIRECT = DirectAnswer(PIXEL_PATH, IMAGE, {"Content-Type": "image/gif", **_HEADERS}, _seen)
"""How most requests are answered: thousands of them may arrive at once."""
