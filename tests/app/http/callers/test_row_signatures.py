"""Rows of the route table that contradict their handler or themselves are refused when they are created."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.callers.limits import Limit
from app.http.rows.endpoint import Call, Endpoint, alias
from app.http.rows.inputs import Body, Chunked, InvalidRow, Path, Query, RawBody
from app.http.rows.replies import Empty, Json
from app.http.rows.transactions import Transaction
from storage.operators.operators import Role
from streams.wire.model import Model

NOTES = Area("notes", "Notes", "Notes of users.", s2s=True, scope="notes")
HOOKS = Area("hooks", "Hooks", "Calls by platforms.", access=Access.WEBHOOK)
OFFICE = Area("office", "Office", "Calls by operators.", access=Access.ADMIN)


class NotePath(Model):
    note_id: str


class Note(Model):
    text: str = ""


async def nothing(call: Call) -> None:
    pass


async def read_note(call: Call, path: Path[NotePath]) -> Note:
    return Note()


async def save(call: Call, path: Path[NotePath], body: Body[Note]) -> Empty:
    return Empty()


async def without_call() -> None:
    pass


async def untyped_call(call) -> None:
    pass


async def call_last(body: Body[Note], call: Call) -> None:
    pass


async def unmarked(call: Call, body: Note) -> None:
    pass


async def untyped(call: Call, body) -> None:
    pass


async def unnamed_model(call: Call, body: Body) -> None:
    pass


async def unnamed_chunked(call: Call, body: Chunked) -> None:
    pass


async def no_model(call: Call, query: Query[dict]) -> None:
    pass


async def optional(call: Call, body: Body[Note] | None) -> None:
    pass


async def with_default(call: Call, body: Body[Note] = Note()) -> None:  # noqa: B008 - refused for it
    pass


async def by_position(call: Call, body: Body[Note], /) -> None:
    pass


async def two_bodies(call: Call, body: Body[Note], raw: RawBody) -> None:
    pass


async def two_queries(call: Call, query: Query[Note], other: Query[Note]) -> None:
    pass


async def says_nothing(call: Call):
    pass


async def returns_text(call: Call) -> str:
    return ""


async def returns_two(call: Call) -> Note | Json[Empty]:
    return Note()


async def unknown_name(call: Call, body: "Body[Noet]") -> None:  # noqa: F821
    pass


def not_async(call: Call) -> None:
    pass


async def hook(call: Call, raw: RawBody) -> None:
    pass


async def change(call: Call, transaction: Transaction) -> None:
    pass


async def change_stream(call: Call, transaction: Transaction, body: Chunked[Note]) -> None:
    pass


async def change_twice(call: Call, transaction: Transaction, other: Transaction) -> None:
    pass


HANDLERS: list[tuple[Callable[..., Any], str]] = [
    (without_call, "the first parameter of the handler must be a Call"),
    (untyped_call, "the first parameter of the handler must be a Call"),
    (call_last, "the first parameter of the handler must be a Call"),
    (
        unmarked,
        "parameter body must be one of Body[...], Chunked[...], RawBody, Query[...], Path[...] or Transaction",
    ),
    (
        untyped,
        "parameter body must be one of Body[...], Chunked[...], RawBody, Query[...], Path[...] or Transaction",
    ),
    (
        optional,
        "parameter body must be one of Body[...], Chunked[...], RawBody, Query[...], Path[...] or Transaction",
    ),
    (unnamed_model, "parameter body must name a model: Body[...]"),
    (unnamed_chunked, "parameter body must name a model: Chunked[...]"),
    (no_model, "parameter query must name a model: Query[...]"),
    (with_default, "parameter body must not have a default"),
    (by_position, "parameter body cannot be passed by its name"),
    (two_bodies, "parameters body and raw hold the same part of the request"),
    (two_queries, "parameters query and other hold the same part of the request"),
    (change_twice, "parameters transaction and other hold the same part of the request"),
    (change_stream, "parameter transaction: a stream cannot be stored as an answer"),
    (says_nothing, "the handler must say what it returns"),
    (returns_text, "the handler cannot return str"),
    (returns_two, "the handler returns more than one model"),
    (unknown_name, "an annotation of the handler cannot be resolved: name 'Noet' is not defined"),
    (not_async, "the handler must be an async function"),
    (read_note, "/bp/x has the parameters none, but Path has note_id"),
]


@pytest.mark.parametrize(("handler", "problem"), HANDLERS)
def test_handler_with_an_invalid_signature_is_refused(handler: Any, problem: str) -> None:
    name = handler.__name__
    with pytest.raises(InvalidRow, match=re.escape(f"POST /bp/x ({name}): {problem}")) as refused:
        Endpoint("POST", "/bp/x", handler, NOTES)
    assert "\n" not in str(refused.value)


ROWS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: Endpoint("GET", "/bp/notes/{id}", read_note, NOTES),
        "GET /bp/notes/{id} (read_note): /bp/notes/{id} has the parameters id, but Path has note_id",
    ),
    (
        lambda: Endpoint("GET", "/bp/notes/{note_id}", nothing, NOTES),
        "/bp/notes/{note_id} has the parameters note_id, but Path has none",
    ),
    (
        lambda: Endpoint("GET", "/bp/note/{note_id}", read_note, NOTES, s2s="/bp/server/notes"),
        "/bp/server/notes has the parameters none, but Path has note_id",
    ),
    (
        lambda: Endpoint("GET", "/bp/notes/{note_id}", save, NOTES),
        "GET /bp/notes/{note_id} (save): parameter body: a GET request has no body",
    ),
    (
        lambda: Endpoint("GET", "/bp/x", nothing, NOTES, s2s="/bp/x2"),
        "the S2S path /bp/x2 is not under /bp/server/",
    ),
    (
        lambda: Endpoint("GET", "/bp/x", change, NOTES),
        "GET /bp/x (change): parameter transaction: a GET request has no effect",
    ),
    (
        lambda: Endpoint("POST", "/x", change, replace(NOTES, access=Access.PUBLIC, s2s=False)),
        "parameter transaction: a key needs a caller who is known",
    ),
    (lambda: Endpoint("GET", "/notes", nothing, NOTES), "only a path under /bp/ has an S2S path"),
    (
        lambda: Endpoint("GET", "/bp/x", nothing, replace(NOTES, scope="")),
        "area notes has no scope for its S2S paths",
    ),
    (
        lambda: Endpoint("GET", "/bp/server/x", nothing, replace(NOTES, s2s=False, scope="")),
        "area notes has no scope for its S2S paths",
    ),
    (
        lambda: Endpoint("POST", "/bp/x", nothing, NOTES, limit=Limit("signup", by="note_id")),
        "limit: no Body, Path or Query has a field note_id",
    ),
    (lambda: Endpoint("POST", "/bp/hook/{app_id}", nothing, HOOKS), "the handler of a webhook must take a RawBody"),
    (lambda: Endpoint("POST", "/bp/hook", hook, HOOKS), "a webhook has one path, which names the app as {app_id}"),
    (lambda: Endpoint("GET", "/x", nothing, OFFICE), "GET /x (nothing): area office has no role for its operators"),
    (
        lambda: Endpoint("GET", "/x", nothing, replace(OFFICE, access=Access.PUBLIC, role=Role.VIEWER)),
        "area office has a role, but its access is not ADMIN",
    ),
    (
        lambda: alias(Endpoint("GET", "/bp/note/{note_id}", read_note, NOTES), "/bp/notes"),
        "/bp/notes has the parameters none, but Path has note_id",
    ),
]


@pytest.mark.parametrize(("create", "problem"), ROWS)
def test_row_that_contradicts_itself_is_refused(create: Callable[[], object], problem: str) -> None:
    with pytest.raises(InvalidRow, match=re.escape(problem)):
        create()


@pytest.mark.parametrize(
    ("path", "server_path"),
    [
        ("/bp/user/login", "/bp/server/user/login"),
        ("/bp/user/me", "/bp/server/user/{user_id}"),
        ("/bp/user/me/deactivate", "/bp/server/user/{user_id}/deactivate"),
        ("/bp/user/menu", "/bp/server/user/menu"),
        ("/bp/leaderboard/data", "/bp/server/user/{user_id}/leaderboard/data"),
    ],
)
def test_s2s_path_follows_from_the_c2s_path(path: str, server_path: str) -> None:
    assert Endpoint("POST", path, nothing, NOTES).paths == (path, server_path)


def test_row_may_name_its_s2s_path_or_have_none() -> None:
    assert Endpoint("GET", "/bp/x", nothing, NOTES, s2s="/bp/server/y").paths == ("/bp/x", "/bp/server/y")
    assert Endpoint("GET", "/bp/x", nothing, replace(NOTES, s2s=False)).paths == ("/bp/x",)
    assert Endpoint("GET", "/bp/server/x", nothing, NOTES).paths == ("/bp/server/x",)
