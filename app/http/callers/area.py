"""The settings that the endpoints of one area share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from aiohttp import web

from app.http.callers.caller import Access
from app.http.errors import Statuses, UserNotFound
from storage.operators.operators import Role
from streams.wire.errors import ServiceError


class Audience(StrEnum):
    """A group of the API reference: who calls the endpoints."""

    APPS = "Apps"
    SERVERS = "App servers"
    OPERATORS = "Operators"
    WEBHOOKS = "Webhooks"
    DEVELOPMENT = "Development"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an area that is a section of its own in the API reference."""

    name: str
    """Its tag."""
    title: str
    description: str
    paths: tuple[str, ...]
    """Beginnings of the paths of its endpoints."""


@dataclass(frozen=True, slots=True)
class Area:
    """The settings that the endpoints of one area share.

    Endpoints that differ in a setting have a variant of the area, made with `dataclasses.replace`.
    """

    group: str
    """Tag of its endpoints in the API reference, except those of its `sections`."""
    title: str
    """Title of the group."""
    description: str
    """The content of the group."""
    access: Access = Access.SESSION
    audience: Audience | None = None
    """Its group in the API reference, if this does not follow from `access`."""
    sections: tuple[Section, ...] = ()
    """Its parts in the API reference: the first that has a path. Other paths are in the section of the area."""
    role: Role | None = None
    """The role that an operator needs. Required for `Access.ADMIN`, and only for it."""
    s2s: bool = False
    """Whether each endpoint also has an S2S path, derived from its C2S path unless the row names another."""
    scope: str = ""
    """The `scope` that a server token needs. Required for endpoints with an S2S path."""
    statuses: Statuses = field(default_factory=dict)
    """HTTP statuses that differ from the usual ones of errors."""
    unknown_user_error: type[ServiceError] | None = UserNotFound
    """The error when the user in an S2S path does not exist. None: the user is not looked up."""
    frozen_allowed: bool = False
    """Whether the user of a frozen account may call."""
    accepts_session: bool = False
    """Whether S2S paths also accept a session in place of a server token (the account endpoints)."""
    single_use_token: bool = False
    """Whether a server token must have a `jti`."""
    ignores_app: bool = False
    """Whether the headers that name the app and the version of the interface are ignored. Only for public areas."""
    access_log: bool = True
    """Whether each call writes an access log line."""
    error_page: Callable[[web.Request, int], web.Response] | None = None
    """Makes the page that browsers get in place of the error envelope, with this HTTP status."""
