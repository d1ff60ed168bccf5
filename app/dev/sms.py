"""The text messages that the sandbox of a development server gets."""

from app.dev.area import DEVELOPMENT
from app.dev.sandbox import ask_sandbox
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from streams.wire.errors import BackendUnavailable
from streams.wire.model import Model
from vendors.catalog import Capability
from vendors.sms.inbox import KeptMessage, SmsInbox

_INBOX = Capability[None, SmsInbox]("sms_inbox").by(SmsInbox)


class SmsQuery(Model):
    to: str | None = None
    """List only the messages to this phone number."""


class SmsList(Model):
    messages: list[KeptMessage]


async def read_sms(call: Call, query: Query[SmsQuery]) -> SmsList:
    """List the text messages that were sent, the newest first.

    `at` is in Unix milliseconds. Only development servers have this endpoint.
    """
    to = query.to or None
    if to is not None and to.startswith(" "):  # A + that is typed into an address bar arrives as a space.
        to = f"+{to[1:]}"
    messages = await ask_sandbox(call.services, _INBOX, lambda inbox: inbox.messages(to))
    return SmsList(messages=messages)


SMS_ROUTES = [Endpoint("GET", "/dev/sms", read_sms, DEVELOPMENT, errors=(BackendUnavailable,))]
