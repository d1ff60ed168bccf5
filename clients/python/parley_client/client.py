"""The client of one user of an app."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self, cast

from aiohttp import ClientSession

from parley_client.areas.account import Account
from parley_client.areas.cards import Cards
from parley_client.areas.wallet import Wallet
from parley_client.backoff import Backoff
from parley_client.calls import INVALID_SESSION, Calls
from parley_client.errors import NotUnderstood, ParleyError
from parley_client.http import Http
from parley_client.session import ClientCaller, Session, SessionStore
from parley_client.types import Asset, ShareCode, User
from parley_client.user_calls import UserCalls


class ParleyClient(UserCalls):
    """A client of one user of an app.

    `sign_key` is one of the app's `sign_keys`, which production requires. `session` or `store` continue an earlier
    session. If the session has ended, `on_session_expired` is called, which signs in again; without it the client
    uses the token of a sign-in at a third party. The request is then repeated once. `http` is an aiohttp session
    with settings of your own, such as a proxy; it stays open when the client is closed.
    """

    def __init__(
        self,
        base_url: str,
        app_id: str = "default",
        *,
        sign_key: str | None = None,
        session: Session | str | None = None,
        store: SessionStore | None = None,
        on_session_expired: Callable[["ParleyClient"], Awaitable[None]] | None = None,
        backoff: Backoff | None = None,
        http: ClientSession | None = None,
    ) -> None:
        given = Session(session) if isinstance(session, str) else session
        self._caller = ClientCaller(app_id, sign_key=sign_key, session=given, store=store)
        self._http = Http(base_url, session=http)
        self._on_session_expired = on_session_expired
        self._caller.sign_in_again = self._sign_in_again
        super().__init__(Calls(self._http, self._caller, backoff or Backoff()))
        self.account: Account = Account(self._calls)
        self.cards = Cards(self._calls)
        self.wallet = Wallet(self._calls)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.close()

    @property
    def session(self) -> Session | None:
        """The session, to be kept as secret as a password. None: the user is not signed in."""
        return self._caller.session

    async def sign_in(self, platform: str, info: Mapping[str, Any] | str, /, **identifiers: str) -> User:
        """Sign in and return the user.

        `platform` is a sign-in platform, such as `device` or `email_code`, and `info` its fields. `identifiers` are
        those of the device and the app, such as `platform="ios"`.
        """
        return await self._enter("/bp/user/login", {**identifiers, platform: info})

    async def sign_up(self, platform: str, info: Mapping[str, Any], /, **identifiers: str) -> User:
        """Make an account with `name_password` or `email_password`, sign in and return the user."""
        return await self._enter("/bp/user/signup", {**identifiers, platform: info})

    async def sign_out(self) -> None:
        """End the session, on the server and here."""
        try:
            await self._calls.post("/bp/user/logout", repeatable=True, renews=False)
        except ParleyError as error:
            if error.error_type != INVALID_SESSION:
                raise
        self._caller.keep(None)

    async def refresh_session(self) -> bool:
        """Make a new session as if this one had ended. Returns whether it could."""
        return await self._caller.renew(self._caller.session)

    async def share_code(self, quota: int | None = None) -> ShareCode:
        """Return a code with which others join the user's subscription."""
        return cast(ShareCode, await self._calls.once("/bp/asset/share_group/code", {"share_code_quota": quota}))

    async def join_share_group(self, share_code: str) -> list[Asset]:
        """Join the subscription of another user. Returns what this user has now."""
        reply = await self._calls.once("/bp/asset/share_group/join", {"share_code": share_code})
        return cast(list[Asset], reply["assets"])

    async def _sign_in_again(self) -> None:
        if self._on_session_expired is not None:
            await self._on_session_expired(self)
        elif (session := self.session) is not None and session.renewable:
            await self.sign_in("bp_auth_token", session.bp_auth_token or "")

    async def _enter(self, path: str, body: dict[str, Any]) -> User:
        reply = await self._calls.post(path, body, authenticated=False)
        try:
            self._caller.keep(Session.of(reply))
        except (KeyError, TypeError) as error:
            raise NotUnderstood(f"the response of {path} has no session") from error
        return cast(User, reply["user"])
