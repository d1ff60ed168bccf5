"""The session of a user, where it is kept, and the headers that it needs."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from parley_client import signatures
from parley_client.http import Request

APP_HEADER = "X-Service-App-Id"
SESSION_HEADER = "X-Service-Session-Token"


@dataclass(frozen=True, slots=True)
class Session:
    """What a client keeps to remain signed in. It is as secret as a password."""

    token: str = field(repr=False)
    uid: str = ""
    bp_auth_token: str | None = field(default=None, repr=False)
    """Signs in once more without the user, after a sign-in at a third party. It is valid once."""
    bp_auth_expires_ms: int = 0

    @classmethod
    def of(cls, reply: Mapping[str, Any]) -> "Session":
        """Return the session of the response to a login or a sign-up."""
        user, bp_auth = reply["user"], reply.get("bp_auth") or {}
        return cls(
            user["session"]["session_token"],
            user["uid"],
            bp_auth.get("bp_auth_token"),
            bp_auth.get("expire_at_ms", 0),
        )

    @property
    def renewable(self) -> bool:
        return self.bp_auth_token is not None and time.time() * 1000 < self.bp_auth_expires_ms


class SessionStore(Protocol):
    """Keeps the session while the program does not run."""

    def load(self) -> Session | None: ...

    def save(self, session: Session | None) -> None: ...


class FileStore:
    """Keeps the session in a file that only its owner can read."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def load(self) -> Session | None:
        try:
            return Session(**json.loads(self._path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None  # A session that cannot be read is like none: the user signs in again.

    def save(self, session: Session | None) -> None:
        if session is None:
            self._path.unlink(missing_ok=True)
            return
        new = self._path.with_name(f"{self._path.name}.new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(session), file)
        new.replace(self._path)


class ClientCaller:
    """A client app, with the session of its user and the app's key for signatures."""

    def __init__(
        self, app_id: str, *, sign_key: str | None, session: Session | None, store: SessionStore | None
    ) -> None:
        self.sign_in_again: Callable[[], Awaitable[None]] | None = None
        """Makes a new session. None: the user has to."""
        self._app_id = app_id
        self._sign_key = sign_key
        self._store = store
        self._session = session if session is not None or store is None else store.load()
        self._renewal = asyncio.Lock()
        self._renewed_by: asyncio.Task[Any] | None = None

    @property
    def session(self) -> Session | None:
        return self._session

    def keep(self, session: Session | None) -> None:
        self._session = session
        if self._store is not None:
            self._store.save(session)

    async def renew(self, used: object) -> bool:
        if self._renewed_by is asyncio.current_task():
            return False
        async with self._renewal:
            if self._session is not used:
                return self._session is not None
            stored = self._store.load() if self._store is not None else None
            if stored is not None and stored != self._session:
                self._session = stored  # Another client has renewed it.
                return True
            if self.sign_in_again is None:
                return False
            self._renewed_by = asyncio.current_task()
            try:
                await self.sign_in_again()
            finally:
                self._renewed_by = None
            return self._session is not used

    def path(self, path: str) -> str:
        return path

    def headers(self, request: Request, target: str) -> Mapping[str, str]:
        headers = {APP_HEADER: self._app_id}
        if request.authenticated and self._session is not None:
            headers[SESSION_HEADER] = self._session.token
        if self._sign_key is not None:
            headers[signatures.HEADER] = signatures.sign(self._sign_key, request.method, target, request.body)
        return headers
