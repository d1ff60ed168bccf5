"""Logins and sign-ups with an email address, and the codes and links that they need (§4.1, §4.3, §4.7)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pydantic import Field

from app.accounts.errors import EmailInvalid, EmailLoginNotAllowed
from app.accounts.mails.account_text import account_text, request_text
from app.accounts.mails.mails import CustomVariables, enqueue_mail, verify_link
from app.accounts.mails.not_me import not_me_link
from app.accounts.mails.texts import language_of
from app.accounts.passwords.passwords import prove_by_password
from app.accounts.passwords.rules import Password
from app.accounts.proofs.addresses import (
    ClientPlatform,
    address_in,
    email_config,
    login_config,
    new_address_in,
    require_enabled,
    require_sending,
    sending_config,
)
from app.accounts.proofs.code_checking import check_sent_code
from app.accounts.proofs.code_sending import Counted, counted_link, no_link, store_code
from app.accounts.proofs.proofs import Proven, use_code
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from storage.accounts import codes, identities
from storage.accounts.codes import LOGIN_EMAIL, SIGN_UP_EMAIL, VERIFY_LINK, RightCode
from storage.accounts.emails import identity_of
from storage.accounts.identities import Identity
from storage.mail.addresses import MAX_CHARACTERS, normalized
from storage.postgres.database import Connection
from streams.wire.errors import ConfigInvalid
from streams.wire.model import Model

_CODE_CHARACTERS = 64
_MOMENTS = {
    "login_email": (LOGIN_EMAIL, "code_login"),
    "sign_up_email": (SIGN_UP_EMAIL, "sign_up_verification"),
}
"""The codes by the type of a request, and the switches that allow them."""


class EmailPassword(Model):
    email: str = Field(max_length=MAX_CHARACTERS)
    password: Password


class EmailCode(Model):
    email: str = Field(max_length=MAX_CHARACTERS)
    verify_code: str | None = Field(default=None, max_length=_CODE_CHARACTERS)
    """The newest code of type `login_email`. It can be used once."""


class EmailSignUp(EmailPassword):
    verify_code: str | None = Field(default=None, max_length=_CODE_CHARACTERS)
    """The newest code of type `sign_up_email`, if the app's sign-ups need one."""
    platform: ClientPlatform | None = None
    """The client's operating system."""


class EmailCodeRequest(Model):
    email: str = Field(max_length=MAX_CHARACTERS)
    platform: ClientPlatform
    type: Literal["login_email", "sign_up_email"]
    custom_variables: CustomVariables = Field(default_factory=dict)
    """Values for the app's template of the email."""


class DetectBody(Model):
    email: str = Field(max_length=MAX_CHARACTERS)


class EmailData(Model):
    exists: bool
    """Whether the address belongs to a user."""


class DetectReply(Model):
    """Whether the address belongs to a user."""

    email_data: EmailData


async def send_email_verify_code(call: Call, body: Body[EmailCodeRequest]) -> None:
    """Send a code to an email address, for a login or a sign-up.

    The response does not depend on whether the address belongs to a user.
    """
    kind, switch = _MOMENTS[body.type]
    config = sending_config(call.services, call.app_id)
    require_enabled(config, switch)
    address = new_address_in(call, body.email, field="email")
    now = call.services.clock.now(call.app_id)

    async def store(conn: Connection) -> None:
        code = await call.services.codes.issue(conn, call.app_id, kind, address, now=now, for_s=config.code_s)
        await enqueue_mail(
            call.services,
            conn,
            call.app_id,
            body.type,
            uid=None,
            to=address,
            language=language_of(call.request),
            values={
                "Code": code,
                "Requested": request_text(call, body.platform),
                "CustomVariables": body.custom_variables,
            },
            expires_s=now.timestamp() + config.code_s,
        )

    await store_code(call, kind, address, store=store)


async def detect(call: Call, body: Body[DetectBody]) -> DetectReply:
    """Return whether an email address belongs to a user."""
    try:
        email_config(call.services, call.app_id)
    except ConfigInvalid as error:
        raise EmailLoginNotAllowed from error
    address = normalized(body.email, development=call.services.settings.development)
    if address is None:
        raise EmailInvalid
    async with call.services.database.connection() as conn:
        exists = await identities.user_of(conn, identity_of(call.app_id, address)) is not None
    return DetectReply(email_data=EmailData(exists=exists))


def claimed_address(call: Call, info: EmailPassword | EmailCode) -> str:
    """Return the normalized address of a login, or an empty string if it is not an email address."""
    return normalized(info.email, development=call.services.settings.development) or ""


async def prove_email_password(call: Call, info: EmailPassword) -> Proven:
    """Check an address and a password."""
    login_config(call)
    address = address_in(call, info.email, field="email_password.email")
    return await prove_by_password(call, identity_of(call.app_id, address), info.password)


async def prove_email_code(call: Call, info: EmailCode) -> Proven:
    """Check the code that was sent to an address. The transaction of the login consumes it."""
    login_config(call, "code_login")
    right = await check_code(call, LOGIN_EMAIL, info.email, info.verify_code, within="email_code.")
    identity = identity_of(call.app_id, right.target)
    return Proven(identity, receives_mail=True, on_login=partial(use_code, call, right))


async def check_code(
    call: Call, kind: codes.CodeKind, email: str, code: str | None, *, within: str = ""
) -> RightCode:
    """Return the code of an address if it is right. `within`: the path of the fields `email` and `verify_code`."""
    address = address_in(call, email, field=f"{within}email")
    identity = identity_of(call.app_id, address)
    return await check_sent_code(call, kind, identity, code, field=f"{within}verify_code")


@dataclass(frozen=True, slots=True)
class NewEmail:
    """The address of a user who signs up."""

    identity: Identity
    verified: bool
    store: Callable[[Connection, str], Awaitable[None]] | None = None
    send: Callable[[Connection, str], Awaitable[None]] | None = None
    """Stores the job that sends the link to the user."""
    counted: Counted = no_link


async def prepare_email(call: Call, info: EmailSignUp) -> NewEmail:
    """Check what a client sends to sign up with an address."""
    config = email_config(call.services, call.app_id)
    address = new_address_in(call, info.email, field="email_password.email")
    identity = identity_of(call.app_id, address)
    if config.sign_up_verification:
        right = await check_code(call, SIGN_UP_EMAIL, info.email, info.verify_code, within="email_password.")
        return NewEmail(identity, verified=True, store=partial(use_code, call, right))
    if not config.activation:
        return NewEmail(identity, verified=False)
    require_sending(call.services, call.app_id)
    return NewEmail(
        identity,
        verified=False,
        send=partial(_send_activation, call, address, info.platform),
        counted=partial(counted_link, call, address),
    )


async def _send_activation(
    call: Call, address: str, platform: ClientPlatform | None, conn: Connection, uid: str
) -> None:
    await send_link(call, conn, uid, address=address, platform=platform)


async def send_link(
    call: Call, conn: Connection, uid: str, *, address: str, platform: ClientPlatform | None
) -> None:
    """Store the job that sends a user the link to verify an address. `platform` comes from the request."""
    services, app_id, now = call.services, call.app_id, call.services.clock.now(call.app_id)
    link_s = sending_config(services, app_id).link_s
    code = await services.codes.issue(conn, app_id, VERIFY_LINK, address, now=now, for_s=link_s, uid=uid)
    await enqueue_mail(
        services,
        conn,
        app_id,
        "verify",
        uid=uid,
        to=address,
        language=language_of(call.request),
        values={
            "Link": verify_link(services, code),
            "NotMeLink": not_me_link(services, app_id, uid, address=address, frees=True),
            "Account": await account_text(call, conn, uid, address=address, platform=platform),
        },
        expires_s=now.timestamp() + link_s,
    )
