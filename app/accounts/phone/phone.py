"""Codes that are sent to phone numbers, and logins with these codes (§2.2, §4.1)."""

import re
from functools import partial
from typing import Literal

import phonenumbers
from pydantic import Field

from app.accounts.phone.sms import config_of
from app.accounts.proofs.code_checking import check_sent_code
from app.accounts.proofs.code_sending import store_code
from app.accounts.proofs.proofs import Proven, use_code
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from storage.accounts.codes import PHONE
from storage.accounts.identities import Identity
from storage.accounts.sms import SendSms, SmsContent
from storage.jobs.jobs import enqueue
from storage.postgres.database import Connection
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model
from streams.wire.typed import typed_phone_number

PLATFORM = "phone"
_NUMBER = re.compile(r"\+[0-9()./]{5,40}")
_SENT_CHARACTERS = 64


class PhoneCode(Model):
    """A phone number, and the code that was sent to it."""

    phone_number: str = Field(max_length=_SENT_CHARACTERS)
    """With the country code, such as +4915112345678."""
    verify_code: str | None = Field(default=None, max_length=_SENT_CHARACTERS)
    """The newest code. It can be used once, within ten minutes and at most five tries per network."""


class PhoneCodeRequest(Model):
    phone_number: str = Field(max_length=_SENT_CHARACTERS)
    """With the country code, such as +4915112345678."""
    platform: Literal["website", "ios", "android"] | None = None
    """The client's operating system."""


def e164(number: str, *, field: str) -> str:
    """Return a phone number in E.164. Raises `InvalidParameter`, which names `field`, if it cannot be one."""
    typed = typed_phone_number(number)
    try:
        if _NUMBER.fullmatch(typed):
            parsed = phonenumbers.parse(typed, None)
            if phonenumbers.is_possible_number(parsed):
                return phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)
    except phonenumbers.NumberParseException:
        pass
    raise InvalidParameter(f"{field} must be a phone number with its country code, such as +4915112345678")


def claimed_number(_call: Call, info: PhoneCode) -> str:
    """Return the number that a login names, or an empty string if it cannot be one."""
    try:
        return e164(info.phone_number, field="phone.phone_number")
    except InvalidParameter:
        return ""


async def send_phone_verify_code(call: Call, body: Body[PhoneCodeRequest]) -> None:
    """Send a code to a phone number.

    The platform `phone` logs in with it.
    """
    services, app_id, now = call.services, call.app_id, call.services.clock.now(call.app_id)
    number = e164(body.phone_number, field="phone_number")
    code_s = config_of(services, app_id).code_s

    async def store(conn: Connection) -> None:
        code = await services.codes.issue(conn, app_id, PHONE, number, now=now, for_s=code_s)
        content, expires_s = SmsContent(to=number, code=code), now.timestamp() + code_s
        await enqueue(conn, SendSms.seal(app_id, content, keyring=services.keyring, expires_s=expires_s))

    await store_code(call, PHONE, number, store=store)


async def prove_phone(call: Call, info: PhoneCode) -> Proven:
    """Check the code that was sent to a phone number. The transaction of the login consumes it."""
    identity = Identity(call.app_id, PLATFORM, e164(info.phone_number, field="phone.phone_number"))
    right = await check_sent_code(call, PHONE, identity, info.verify_code, field="phone.verify_code")
    return Proven(identity, on_login=partial(use_code, call, right))
