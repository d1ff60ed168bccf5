"""The signup endpoint: creates a user with a password (§4.3)."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import SecretStr

from app.accounts.email.login import EmailSignUp, prepare_email
from app.accounts.errors import EmailTaken, NameTaken
from app.accounts.passwords.name_password import PLATFORM, NamePassword, check_name, display_name, fold_name
from app.accounts.passwords.passwords import check_new
from app.accounts.proofs.code_sending import Counted, no_link
from app.accounts.proofs.infos import Identifiers
from app.accounts.proofs.proofs import Proven
from app.accounts.proofs.trace import LoginTrace
from app.accounts.sign_in.entry import SignedIn, count_sign_up, is_known, sign_up
from app.accounts.sign_in.platforms import PLATFORMS
from app.accounts.sign_in.views import UserReply, user_view
from app.http.callers.limits import Limit
from app.http.callers.limits import report as report_counts
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from storage.accounts import passwords
from storage.accounts.identities import Identity
from storage.postgres.database import Connection
from streams.wire.errors import InvalidParameter, ServiceError
from streams.wire.model import Model


class SignUps(Model):
    """Exactly one of these must be given."""

    name_password: NamePassword | None = None
    email_password: EmailSignUp | None = None


class SignupBody(SignUps, Identifiers):
    """An identity with a password, and the identifier block."""


@dataclass(frozen=True, slots=True)
class NewAccount:
    """A user that is to be created, with the first identity."""

    identity: Identity
    password: SecretStr
    taken: Callable[[], ServiceError]
    """Creates the error for an identity that already belongs to a user."""
    name: str = ""
    trusted: bool = True
    """False if there is no proof that the identity is the user's own."""
    store: Callable[[Connection, str], Awaitable[None]] | None = None
    """Called with the new user's id in the transaction that creates the user. An error rolls it back."""
    send: Callable[[Connection, str], Awaitable[None]] | None = None
    """Like `store`, unless the email that it sends has to be sent later."""
    counted: Counted = no_link


Prepare = Callable[[Call, Any], Awaitable[NewAccount]]
"""Checks what a client sends to sign up. Raises the client's error."""


async def _by_name(call: Call, info: NamePassword) -> NewAccount:
    name = fold_name(info.name)
    check_name(name)
    return NewAccount(
        Identity(call.app_id, PLATFORM, name), info.password, taken=NameTaken, name=display_name(info.name)
    )


async def _by_email(call: Call, info: EmailSignUp) -> NewAccount:
    new = await prepare_email(call, info)
    return NewAccount(
        new.identity,
        info.password,
        taken=EmailTaken,
        trusted=new.verified,
        store=new.store,
        send=new.send,
        counted=new.counted,
    )


SIGN_UPS: dict[str, Prepare] = {PLATFORM: _by_name, "email_password": _by_email}


class SignupReply(UserReply):
    """The new user, with the session."""

    next_mail_s: int | None = None
    """Seconds after which `POST /bp/user/me/email/send_verify_code` sends the link that verifies the address.
    Present only if the sign-up has not sent it, because too many were sent to the address."""


async def signup(call: Call, body: Body[SignupBody]) -> SignupReply:
    """Sign up.

    The body names exactly one identity with a password. Its user is created and logged in.
    """
    platform, info = _given(body)
    claimed = partial(PLATFORMS[platform].claimed, call, info)
    async with LoginTrace(call, "signup", platform, claimed=claimed) as trace:
        new = await _checked(call, platform, info)
        trace.identify(new.identity)
        await count_sign_up(call)  # This precedes the hash, which takes much CPU time.
        # Sign-ups with the same identity run one at a time, so that only one of them computes a hash.
        async with call.services.logins.hold(new.identity):
            if await is_known(call, new.identity):
                raise new.taken()
            async with new.counted() as wait_s:
                entry = await _sign_up(call, new, body, sends=wait_s == 0)
    return SignupReply(
        user=user_view(entry.account, is_new_user=True, session_token=entry.session_token),
        next_mail_s=math.ceil(wait_s) or None,
    )


async def _checked(call: Call, platform: str, info: Any) -> NewAccount:
    """Return the user to create. If this raises an error, the response says how many sign-ups remain."""
    try:
        new = await SIGN_UPS[platform](call, info)
        check_new(call, new.password, field=f"{platform}.password")
    except ServiceError:
        if call.caller.server_key is None:  # The address of an app's server is shared by all users.
            limit = Limit("signup")
            await report_counts(call.services, call.app_limits, call.request, call.caller, limit=limit)
        raise
    return new


async def _sign_up(call: Call, new: NewAccount, block: Identifiers, *, sends: bool) -> SignedIn:
    new_hash = await call.services.passwords.hash(new.password.get_secret_value())
    store = _storing(call, new, new_hash, sends=sends)
    proven = Proven(new.identity, name=new.name, trusted=new.trusted, on_login=store)
    entry = await sign_up(call, proven, block)
    if entry is None:
        raise new.taken()
    return entry


def _given(body: SignUps) -> tuple[str, Any]:
    names = [name for name in SignUps.model_fields if getattr(body, name) is not None]
    if len(names) > 1:
        raise InvalidParameter(f"exactly one of {' and '.join(names)} must be given")
    if not names:
        raise InvalidParameter(f"one of {', '.join(SIGN_UPS)} is required")
    return names[0], getattr(body, names[0])


def _storing(
    call: Call, new: NewAccount, new_hash: str, *, sends: bool
) -> Callable[[Connection, str], Awaitable[None]]:
    async def store(conn: Connection, uid: str) -> None:
        now = call.services.clock.now(call.app_id)
        await passwords.put(conn, call.app_id, uid, new_hash=new_hash, now=now)
        if new.store is not None:
            await new.store(conn, uid)
        if new.send is not None and sends:
            await new.send(conn, uid)

    return store
