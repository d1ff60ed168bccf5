"""The client of an app's server, which acts for any user of the app."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

from aiohttp import ClientSession

from parley_client.backoff import Backoff
from parley_client.calls import Calls
from parley_client.http import Http, Request, segment
from parley_client.server.tokens import HEADER, ServerKey, server_token
from parley_client.server.user import ServerUser
from parley_client.session import APP_HEADER
from parley_client.types import SocialProfile, User

_SERVER = "/bp/server/user"
_ME = "/bp/user/me"


class ServerCaller:
    """An app's server, which makes a token for each request. `user_id` is the user for whom it acts."""

    def __init__(self, app_id: str, key: ServerKey, audience: str, user_id: str | None) -> None:
        self._app_id = app_id
        self._key = key
        self._audience = audience
        self._user_id = user_id

    @property
    def session(self) -> None:
        return None

    async def renew(self, used: object) -> bool:
        return False

    def path(self, path: str) -> str:
        if self._user_id is None:
            return path
        rest = path.removeprefix(_ME) if path.startswith(_ME) else path.removeprefix("/bp")
        return f"{_SERVER}/{segment(self._user_id)}{rest}"

    def headers(self, request: Request, target: str) -> Mapping[str, str]:
        token = server_token(self._key, self._app_id, user_id=self._user_id, audience=self._audience)
        return {APP_HEADER: self._app_id, HEADER: token}


class ServerClient:
    """A client of an app's server.

    `audience` is the `server_audience` of the app. `http` is an aiohttp session with settings of your own, which
    stays open when the client is closed.
    """

    def __init__(
        self,
        base_url: str,
        app_id: str,
        key: ServerKey,
        *,
        audience: str = "parley",
        backoff: Backoff | None = None,
        http: ClientSession | None = None,
    ) -> None:
        self._app_id = app_id
        self._key = key
        self._audience = audience
        self._backoff = backoff or Backoff()
        self._http = Http(base_url, session=http)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.close()

    def user(self, user_id: str) -> ServerUser:
        """Return the calls for a user."""
        return ServerUser(self._calls(user_id))

    async def sign_in(self, platform: str, info: Mapping[str, Any] | str, /, **identifiers: str) -> User:
        """Sign in a user, whose `session` can be given to the user's client."""
        reply = await self._calls(None).post(f"{_SERVER}/login", {**identifiers, platform: info})
        return cast(User, reply["user"])

    async def sign_up(self, platform: str, info: Mapping[str, Any], /, **identifiers: str) -> User:
        reply = await self._calls(None).post(f"{_SERVER}/signup", {**identifiers, platform: info})
        return cast(User, reply["user"])

    async def email_exists(self, email: str) -> bool:
        reply = await self._calls(None).post(f"{_SERVER}/detect", {"email": email}, repeatable=True)
        return bool(reply["email_data"]["exists"])

    async def profiles(self, user_ids: Sequence[str]) -> dict[str, list[SocialProfile]]:
        """Return the public profiles of users by their ids. Users that do not exist are absent."""
        path = f"{_SERVER}/{segment(user_ids[0])}/social_profile"
        reply = await self._calls(None).get(path, user_ids=",".join(user_ids))
        return cast(dict[str, list[SocialProfile]], reply["social_profile"])

    def _calls(self, user_id: str | None) -> Calls:
        return Calls(self._http, ServerCaller(self._app_id, self._key, self._audience, user_id), self._backoff)
