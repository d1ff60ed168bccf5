"""Logs in a proven identity: finds or creates its user, and begins a session."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from app.accounts.bans import refuse_banned_identity
from app.accounts.errors import AccountAuthFailed, UserBanned
from app.accounts.mails.first_proof import end_unproven_freeze, first_proof
from app.accounts.proofs import throttle, trace
from app.accounts.proofs.infos import Identifiers
from app.accounts.proofs.proofs import Proven
from app.accounts.proofs.third_party import details_from
from app.accounts.reports import report_change
from app.http.callers import limits
from app.http.callers.addresses import peer_ip
from app.http.errors import DeactivationPending
from app.http.rows.endpoint import Call
from app.services import Services
from storage.accounts import bans, bp_auth, identities, logins, profiles
from storage.accounts.bp_auth import BpAuth
from storage.accounts.identities import Identity, LinkedIdentity, UserAccount
from storage.accounts.logins import NewSession
from storage.accounts.sessions import Client
from storage.accounts.users import User
from storage.configs.kinds.auth import AUTH, Auth
from storage.postgres.database import Connection
from storage.tokens import digest, new_token
from streams.wire.errors import RateLimited, Unavailable
from streams.wire.ids import new_id

_TRIES = 3
"""How often a login looks for the user of an identity, which may be bound and unbound in between."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A user who has just logged in or signed up."""

    account: UserAccount
    is_new: bool
    session_token: str
    bp_auth: BpAuth | None
    """Only for third-party identities that this call has proven."""


@dataclass(frozen=True, slots=True)
class _Start:
    """The values that are known when a login begins."""

    token: str
    """The token of its session."""
    session: NewSession
    cuid: str | None
    now: datetime


def _start(call: Call, block: Identifiers) -> _Start:
    token, now = new_token(), call.services.clock.now(call.app_id)
    expire_time = now + timedelta(seconds=_auth(call).session_absolute_s)
    return _Start(token, NewSession(digest(token), expire_time, _client_of(call, block)), block.cuid, now)


async def log_in(call: Call, proven: Proven, block: Identifiers) -> SignedIn:
    """Log in the user of an identity. A missing user is created.

    Raises `AccountAuthFailed` if there is no user and none may be created, `DeactivationPending` if the account is
    frozen, and `UserBanned`.
    """
    # Logins with the same identity run one at a time. Otherwise, each of several concurrent first logins would
    # count as a sign-up, and concurrent logins of one user would each hold a database connection while they wait
    # for the row of the user.
    async with call.services.logins.hold(proven.identity):
        start = _start(call, block)
        for number in range(_TRIES):
            if (entry := await _enter_known(call, proven, start)) is not None:
                return entry
            if not proven.creates_user:
                trace.step(call, "user", seen="the identity was taken from its user meanwhile")
                raise AccountAuthFailed
            if number == 0:
                await count_sign_up(call)
            if (entry := await _sign_up(call, proven, start)) is not None:
                return entry
    raise Unavailable("the account changed during the login")


async def count_sign_up(call: Call) -> None:
    """Count a user that is about to be created. Raises `RateLimited`."""
    try:
        await limits.check_address(call.services, call.app_limits, call.request, call.caller, name="signup")
    except RateLimited:
        trace.rate_exceeded(call, call.request[limits.COUNTS][-1], of="sign-ups")
        raise


async def sign_up(call: Call, proven: Proven, block: Identifiers) -> SignedIn | None:
    """Create the user of an identity and log it in. Return None if the identity belongs to a user already.

    Raises `UserBanned` if its last user was deactivated while banned.
    """
    return await _sign_up(call, proven, _start(call, block))


async def _sign_up(call: Call, proven: Proven, start: _Start) -> SignedIn | None:
    identity, now = proven.identity, start.now
    user = User(new_id(), "active", now, proven.name, start.cuid or "", None, None)
    reported = bool(call.services.sinks.want(call.app_id, "account"))
    async with _statements(call, proven, in_transaction=reported) as conn:
        if not await logins.sign_up(
            conn,
            identity,
            session=start.session,
            uid=user.uid,
            now=now,
            proven=proven.trusted,
            name=user.name,
            cuid=user.cuid,
            digests=bans.digests_of(identity, keyring=call.services.keyring),
        ):
            await refuse_banned_identity(call.services, conn, identity)
            return None
        await report_change(call.services, conn, call.app_id, user.uid, "sign_up", platform=identity.platform)
        made = await _prepare(call, conn, proven, uid=user.uid, now=now)
        await _remember_network(call, conn, proven, uid=user.uid)
    verified = proven.verified
    linked = LinkedIdentity(
        identity.platform,
        identity.social_id,
        openid="" if verified is None else verified.openid,
        xid="" if verified is None else verified.xid,
        trust="proven" if proven.trusted else "client",
    )
    return _entered(call, identity, SignedIn(UserAccount(user, (linked,)), True, start.token, made))  # noqa: FBT003


async def is_known(call: Call, identity: Identity) -> bool:
    async with call.services.database.connection() as conn:
        return await identities.user_of(conn, identity) is not None


async def _enter_known(call: Call, proven: Proven, start: _Start) -> SignedIn | None:
    """Log in the user of an identity. Return None if there is no user.

    Raises `DeactivationPending` and `UserBanned`, before the code or token of the proof is consumed.
    """
    services, app_id, identity = call.services, call.app_id, proven.identity
    session, now, made = start.session, start.now, None
    async with _statements(call, proven) as conn:
        account = await _begin_session(services, conn, proven, start)
        if account is None:
            return None
        uid, ban = account.user.uid, account.user.ban(now=now)
        if account.user.status == "active" and ban is None:
            made = await _prepare(call, conn, proven, uid=uid, now=now)
            if proven.receives_mail and await first_proof(
                services, conn, identity, by="code", now=now, keep=session.digest
            ):
                account = await identities.find_account(conn, app_id, uid) or account
            await _remember_network(call, conn, proven, uid=uid)
    if ban is not None:
        raise UserBanned(ban)
    if account.user.status == "frozen":
        raise DeactivationPending(account.user, now=now)
    keep_newest = _auth(call).sessions_per_user
    async with services.database.connection() as conn:
        await logins.trim_sessions(conn, app_id, uid, cache=services.sessions, now=now, keep_newest=keep_newest)
    return _entered(call, identity, SignedIn(account, False, start.token, made))  # noqa: FBT003


async def _begin_session(services: Services, conn: Connection, proven: Proven, start: _Start) -> UserAccount | None:
    begin = partial(logins.log_in, conn, proven.identity, session=start.session, now=start.now, cuid=start.cuid)
    account = await begin()
    if account is None or account.user.status != "frozen" or not proven.receives_mail:
        return account
    if account.user.ban(now=start.now) is not None:
        return account
    return await begin() if await end_unproven_freeze(services, conn, proven.identity) else account


def _statements(
    call: Call, proven: Proven, *, in_transaction: bool = False
) -> AbstractAsyncContextManager[Connection]:
    """Return a connection for the statements of a login, in a transaction if the proof has effects of its own."""
    database = call.services.database
    if not in_transaction and proven.on_login is None and proven.verified is None and not proven.receives_mail:
        return database.connection()
    return database.transaction()


async def _prepare(call: Call, conn: Connection, proven: Proven, *, uid: str, now: datetime) -> BpAuth | None:
    """Call `on_login` of the proof, and store the platform's report. `conn` is in the login's transaction."""
    if proven.on_login is not None:
        await proven.on_login(conn, uid)
    if proven.verified is None:
        return None
    await store_verified(call, conn, proven)
    return await issue_bp_auth(call, conn, proven, now=now)


async def _remember_network(call: Call, conn: Connection, proven: Proven, *, uid: str) -> None:
    """Remember the network of a login, unless there is no proof but an id, such as that of a device."""
    if proven.on_login is not None or proven.verified is not None:
        await throttle.remember_network(call, conn, call.app_id, uid)


async def store_verified(call: Call, conn: Connection, proven: Proven) -> None:
    """Store a third-party platform's report about a user's identity."""
    assert proven.verified is not None, "the identity was proven by a third-party platform"
    await identities.store_details(
        conn,
        proven.identity,
        details=details_from(proven.verified),
        keyring=call.services.keyring,
        proven=proven.trusted,
    )
    if proven.fetch_profile:
        await profiles.fetch_later(conn, proven.identity)


async def issue_bp_auth(call: Call, conn: Connection, proven: Proven, *, now: datetime) -> BpAuth:
    """Create a `bp_auth` for an identity, which need not belong to a user."""
    within_s = _auth(call).bp_auth_s
    return await bp_auth.issue(conn, proven.identity, proven=proven.trusted, now=now, within_s=within_s)


def _client_of(call: Call, block: Identifiers) -> Client:
    """Return the client that logs in. The headers of an app's server say nothing about the device of its user."""
    os = block.platform or ""
    if call.caller.server_key is not None:
        return Client(os)
    # Bytes that are not UTF-8 are surrogates here, which PostgreSQL does not store.
    agent = call.request.headers.get("User-Agent", "")[:256].encode(errors="replace").decode()
    return Client(os, agent, peer_ip(call.request, call.services.settings.trusted_proxies))


def _auth(call: Call) -> Auth:
    return call.services.configs.singleton(AUTH, call.app_id)


def _entered(call: Call, identity: Identity, entry: SignedIn) -> SignedIn:
    call.logged_in(entry.account.user.uid, platform=identity.platform, is_new=entry.is_new)
    return entry
