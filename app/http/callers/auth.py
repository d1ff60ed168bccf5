"""Authentication of requests: session tokens, signatures and server tokens (§5)."""

import asyncio
import time
from functools import partial

from aiohttp import web
from prometheus_client import Counter

from app.http.callers import server_tokens, signatures
from app.http.callers.area import Area
from app.http.callers.caller import Access, Caller
from app.http.errors import DeactivationPending
from app.http.paths import USER_ID
from app.services import Services
from storage.accounts import users
from storage.accounts.session_cache import Session
from storage.accounts.sessions import current_session
from storage.accounts.single_use import use_briefly
from storage.accounts.users import User
from storage.configs.kinds.auth import AUTH, Auth
from storage.tokens import digest, is_token
from streams.wire.errors import (
    AuthFailed,
    ConfigInvalid,
    InvalidSession,
    PermissionDenied,
    StoreError,
    Unavailable,
    listed,
)
from streams.wire.ids import is_id

_HASHED_BYTES = 512 * 1024
"""Larger bodies are hashed in a thread, without the GIL."""

SESSION_HEADER = "X-Service-Session-Token"

REPLAYS_UNCHECKED = Counter(
    "parley_replays_unchecked",
    "Nonces and token ids that were accepted without a replay check because Valkey was unavailable.",
    ["what"],
)


async def identify(
    request: web.Request, services: Services, area: Area, *, app_id: str, on_server_path: bool
) -> Caller:
    """Authenticate the request by its headers alone, as `area` requires, and return the caller.

    An S2S path requires a server token. With `accepts_session` it also accepts a session token in place of the
    server token; the session must then belong to the user in the path.
    """
    config = services.configs.singleton(AUTH, app_id)
    if on_server_path and not (area.accepts_session and _has_session_alone(request)):
        return await _server_caller(request, services, config, area, app_id=app_id)
    if area.access is Access.PUBLIC:
        return Caller(app_id=app_id)
    if area.access is Access.SIGNED:
        return Caller(app_id=app_id, must_sign=config.require_sign)
    session = await _session(request, services, config, app_id=app_id)
    if on_server_path and request.match_info.get(USER_ID, session.uid) != session.uid:
        raise PermissionDenied(f"{SESSION_HEADER} does not belong to the user in the path")
    if session.frozen and not area.frozen_allowed:
        await _refuse_frozen(services, app_id=app_id, uid=session.uid)
    return Caller(
        app_id=app_id,
        user_id=session.uid,
        session_id=session.digest,
        must_sign=config.require_sign,
        frozen=session.frozen,
    )


async def check_sign(request: web.Request, services: Services, *, app_id: str, raw: bytes) -> None:
    """Check `X-Service-Sign` against the body `raw`.

    Raises `AuthFailed` when the header is missing or wrong, or when its nonce has been used before.
    """
    config = services.configs.singleton(AUTH, app_id)
    if not config.sign_keys:
        raise ConfigInvalid("auth default: sign_keys is empty while require_sign is on")
    signature = signatures.parse(request.headers.get(signatures.HEADER, ""))
    # Anybody can sign with an empty key, which versions without a check of keys have stored.
    keys = [text for key in config.sign_keys if (text := key.key.get_secret_value())]
    if (
        signature is None
        or not signature.fresh(time.time())
        or (signature.nonce is None and config.require_nonce)
        or not await _proves(signature, keys, request, raw)
        or not await _nonce_is_new(services, signature.nonce, app_id=app_id)
    ):
        raise AuthFailed(f"{signatures.HEADER} is missing or wrong")


async def _proves(signature: signatures.Signature, keys: list[str], request: web.Request, raw: bytes) -> bool:
    proves = partial(signature.proves, keys, method=request.method, path_and_query=request.raw_path, body=raw)
    return proves() if len(raw) <= _HASHED_BYTES else await asyncio.to_thread(proves)


async def check_user(services: Services, caller: Caller, area: Area) -> User | None:
    """Check that the user of an S2S call exists and may call. Return the user, or None for other calls."""
    missing = area.unknown_user_error
    if caller.server_key is None or caller.user_id is None or missing is None:
        return None
    user = await find_user(services, app_id=caller.app_id, uid=caller.user_id)
    if user is None:
        raise missing(f"user {listed([caller.user_id])} does not exist")
    if user.status == "frozen" and not area.frozen_allowed:
        raise DeactivationPending(user, now=services.clock.now(caller.app_id))
    return user


async def _server_caller(
    request: web.Request,
    services: Services,
    config: Auth,
    area: Area,
    *,
    app_id: str,
) -> Caller:
    key, claims = server_tokens.verify(request.headers.get(server_tokens.HEADER, ""), config, app_id=app_id)
    if not claims.covers(area.scope):
        raise PermissionDenied(f"scope of {server_tokens.HEADER} does not cover {area.scope}")
    if area.single_use_token and claims.jti is None:
        raise server_tokens.refused()
    user_id, session_id = request.match_info.get(USER_ID), None
    if user_id is None and area.access is Access.SESSION:
        session = await _session(request, services, config, app_id=app_id)
        user_id, session_id = session.uid, session.digest
    if claims.sub is not None and claims.sub != user_id:
        raise PermissionDenied(f"sub of {server_tokens.HEADER} is not the user of this call")
    await _check_replay(services, claims, app_id=app_id, single_use=area.single_use_token)
    return Caller(
        app_id=app_id,
        user_id=user_id,
        session_id=session_id,
        server_key=key.kid,
        only_user=claims.sub is not None,
    )


async def _check_replay(services: Services, claims: server_tokens.Claims, *, app_id: str, single_use: bool) -> None:
    if claims.jti is None:
        return
    try:
        fresh = await use_briefly(services.valkey, app_id, what="token", value=claims.jti, within_s=claims.usable_s)
    except StoreError as error:
        if single_use:
            raise Unavailable("the server cannot check at the moment whether the token was used before") from error
        REPLAYS_UNCHECKED.labels("token").inc()
        return
    if not fresh:
        raise server_tokens.refused()


async def _nonce_is_new(services: Services, nonce: str | None, *, app_id: str) -> bool:
    if nonce is None:
        return True
    try:
        # `t` may lie one window in the future, so a signature can stay valid for two windows.
        return await use_briefly(
            services.valkey, app_id, what="nonce", value=nonce, within_s=2 * signatures.WINDOW_S + 1
        )
    except StoreError:
        REPLAYS_UNCHECKED.labels("nonce").inc()
        return True


async def _session(request: web.Request, services: Services, config: Auth, *, app_id: str) -> Session:
    token = request.headers.get(SESSION_HEADER, "")
    if not is_token(token):
        raise InvalidSession
    session = await current_session(
        services.database,
        services.sessions,
        app_id=app_id,
        digest=digest(token),
        now=services.clock.now(app_id),
        sliding_s=config.session_sliding_s,
    )
    if session is None:
        raise InvalidSession
    return session


async def _refuse_frozen(services: Services, *, app_id: str, uid: str) -> None:
    """Read the user and raise if it is frozen. The cached session may be older than a recovery of the account."""
    user = await find_user(services, app_id=app_id, uid=uid)
    if user is None:
        raise InvalidSession
    if user.status == "frozen":
        raise DeactivationPending(user, now=services.clock.now(app_id))


async def find_user(services: Services, *, app_id: str, uid: str) -> User | None:
    """Read the user. None: there is none, or it is deactivated."""
    if not is_id(uid):
        return None
    async with services.database.connection() as conn:
        return await users.find(conn, app_id, uid)


def _has_session_alone(request: web.Request) -> bool:
    return SESSION_HEADER in request.headers and server_tokens.HEADER not in request.headers
