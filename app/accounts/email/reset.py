"""New passwords by email: the request, the job that sends the link, and the new password (§4.7)."""

from datetime import datetime
from typing import Any

import structlog
from pydantic import Field, SecretStr

from app.accounts.bans import refuse_banned
from app.accounts.mails.account_text import request_text
from app.accounts.mails.first_proof import first_proof
from app.accounts.mails.mails import CustomVariables, enqueue_mail, notify_user, reset_link, reset_page, write_mail
from app.accounts.mails.not_me import not_me_link
from app.accounts.mails.texts import language_of
from app.accounts.passwords.rules import Password, check_password
from app.accounts.proofs import throttle
from app.accounts.proofs.addresses import ClientPlatform, address_in, email_config, new_address_in, sending_config
from app.accounts.proofs.code_sending import store_code
from app.accounts.sessions.revocation import revoke_access
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from app.services import Services
from storage.accounts import codes, emails, identities, login_networks, passwords, users
from storage.accounts.codes import RESET, CodeInvalid, CodeRefused, RightCode
from storage.accounts.emails import identity_of
from storage.accounts.password_resets import ResetRequest, SendReset
from storage.configs.kinds.auth import AUTH
from storage.jobs.jobs import enqueue
from storage.mail.addresses import MAX_CHARACTERS
from storage.postgres.database import Connection
from streams.wire.model import Model

log = structlog.get_logger()

_CODE_CHARACTERS = 256
_FIELD = "random_code"
_SAMPLE_CODE, _SAMPLE_UID = "x" * 43, "0" * 32
"""Of the length of real ones, for an email that is only checked."""


class ForgotPassword(Model):
    email: str = Field(max_length=MAX_CHARACTERS)
    platform: ClientPlatform
    custom_variables: CustomVariables = Field(default_factory=dict)
    """Values for the app's template of the email."""


class ResetPassword(Model):
    random_code: str | None = Field(default=None, max_length=_CODE_CHARACTERS)
    """The code of the link in the email. It can be used once."""
    password: Password
    """The new password: 8 to 256 characters, and none of the common passwords."""
    email: str | None = Field(default=None, max_length=MAX_CHARACTERS)
    """If given, the code must be one for this address."""


async def forgot_password(call: Call, body: Body[ForgotPassword]) -> None:
    """Send a link for setting a new password.

    The response and its time do not depend on whether the address belongs to a user, because a job checks that.
    """
    services, now = call.services, call.services.clock.now(call.app_id)
    reset_page(services, call.app_id)  # The job that sends the email could not report a fault of the config.
    address = new_address_in(call, body.email, field="email")
    request = ResetRequest(
        address=address,
        language=language_of(call.request),
        requested=request_text(call, body.platform),
        custom_variables=body.custom_variables,
    )
    _check_mail(services, call.app_id, request)
    expires_s = now.timestamp() + sending_config(services, call.app_id).reset_s

    async def store(conn: Connection) -> None:
        await enqueue(conn, SendReset.seal(call.app_id, request, keyring=services.keyring, expires_s=expires_s))

    await store_code(call, RESET, address, store=store)


def _check_mail(services: Services, app_id: str, request: ResetRequest) -> None:
    """Raise `InvalidParameter` if the custom variables of a request cannot be sent.

    The job could not tell the client. The check does not depend on whether the address belongs to a user.
    """
    values = _values(services, app_id, request, code=_SAMPLE_CODE, uid=_SAMPLE_UID)
    write_mail(services, app_id, "reset", to=request.address, language=request.language, values=values)


def _values(services: Services, app_id: str, request: ResetRequest, *, code: str, uid: str) -> dict[str, Any]:
    """Return the values of the template's variables."""
    values: dict[str, Any] = {
        "Code": code,
        "Link": reset_link(services, app_id, code),
        "CustomVariables": request.custom_variables,
    }
    if request.requested:  # Not in requests of an earlier version.
        values["Requested"] = request.requested
    if services.settings.has_public_url:  # The app may have its own page for the link.
        values["NotMeLink"] = not_me_link(services, app_id, uid, address=request.address, frees=False)
    return values


async def send_reset(services: Services, job: SendReset) -> None:
    """Send the link for setting a new password, if the address belongs to a user.

    A link that would have expired by now if it had been sent immediately is not sent. A frozen account gets a link
    only if there is no strong proof of its address, because whoever froze it may not be the owner.
    """
    app_id, request, now = job.app_id, job.request(services.keyring), services.clock.now(job.app_id)
    if now.timestamp() >= job.expires_s:
        log.warning("reset.expired", app_id=app_id, request_id=job.request_id)
        return
    config = sending_config(services, app_id)
    async with services.database.transaction() as conn:
        uid = await identities.user_of(conn, identity_of(app_id, request.address))
        user = None if uid is None else await users.lock(conn, app_id, uid)
        if uid is None or user is None:
            return
        if user.status == "frozen" and (await emails.find(conn, app_id, uid)).strongly_proven:
            return  # A reset would end the sessions with which the account can be recovered.
        code = await services.codes.issue(
            conn, app_id, RESET, request.address, now=now, for_s=config.reset_s, uid=uid
        )
        await enqueue_mail(
            services,
            conn,
            app_id,
            "reset",
            uid=uid,
            to=request.address,
            language=request.language,
            values=_values(services, app_id, request, code=code, uid=uid),
            expires_s=now.timestamp() + config.reset_s,
        )


async def reset_password(call: Call, body: Body[ResetPassword]) -> None:
    """Set a new password with the code of an email.

    All sessions of the user end, and a change of the address that is not confirmed yet is cancelled. If the address
    was not verified before, or only by a link that a program may have opened, all other ways to log in are removed,
    and a frozen account is recovered.
    """
    email_config(call.services, call.app_id)
    address = None if body.email is None else address_in(call, body.email, field="email")
    right = await find_reset(call, body.random_code)
    if right.app_id != call.app_id or address not in {None, right.target}:
        raise CodeInvalid(f"{_FIELD} is wrong")
    await set_password(call, right, body.password)


async def find_reset(call: Call, code: str | None) -> RightCode:
    """Return the code of a link, of any app. Raises errors of codes, and `TooManyFailedLogins`."""
    services = call.services
    try:
        async with services.database.connection() as conn:
            return await services.codes.find(conn, RESET, code=code, now=services.clock.now, field=_FIELD)
    except CodeRefused as error:
        if error.wrong:
            await throttle.count_wrong_link(call)
        raise


async def set_password(call: Call, right: RightCode, password: SecretStr) -> None:
    """Consume a code and set its user's password. Raises `InvalidParameter`, `UserBanned` and errors of codes.

    The caller's network replaces all networks from which anybody has logged in to the account before.
    """
    services, app_id, text = call.services, right.app_id, password.get_secret_value()
    now = services.clock.now(app_id)
    check_password(text, services.configs.singleton(AUTH, app_id), field="password")
    new_hash = await services.passwords.hash(text)
    async with services.database.transaction() as conn:
        uid = await _owner(conn, right, now=now)
        await refuse_banned(conn, app_id, uid, now=now)
        await first_proof(services, conn, identity_of(app_id, right.target), by="reset", now=now)
        await passwords.put(conn, app_id, uid, new_hash=new_hash, now=now)
        await revoke_access(services, conn, app_id, uid, now=now)
        await login_networks.forget(conn, app_id, uid)
        await throttle.remember_network(call, conn, app_id, uid)
        await notify_user(call, conn, app_id, uid, "password_reset")


async def _owner(conn: Connection, right: RightCode, *, now: datetime) -> str:
    """Consume a code and return its user. Raises `CodeInvalid` if the user no longer has the address."""
    uid = right.uid
    assert uid is not None, "links are made for users"
    addresses = await emails.lock(conn, right.app_id, uid)
    await codes.use_code(conn, right, now=now)
    if addresses.current != right.target:
        raise CodeInvalid(f"{_FIELD} is for an address that the user no longer has")
    return uid
