"""Each kind of row of the route table, served by a small application."""

import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field

from app.accounts.routes import ACCOUNT_ROUTES
from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.callers.limits import Limit
from app.http.openapi.document import openapi
from app.http.rows.endpoint import Call, Endpoint, alias
from app.http.rows.inputs import Body, Path, Query, RawBody
from app.http.rows.replies import Empty, Json
from app.services import Services
from storage.operators.audit import COMMAND
from streams.wire.errors import ConfigInvalid, ItemNotFound
from streams.wire.ids import new_id
from streams.wire.model import Model, QueryInt
from streams.wire.owned import Owned
from tests.app.callers import ask
from tests.app.callers import token as server_token
from tests.running.servers import Server, running_server


class NoteNotFound(ItemNotFound):
    """No note of the user has this `note_id`."""

    def __init__(self, note_id: str) -> None:
        super().__init__(f"note {note_id} does not exist")


NOTE = Owned(NoteNotFound)
NOTES = Area("notes", "Notes", "Notes of users.", s2s=True, scope="notes", statuses={ConfigInvalid: 417})
HOOKS = Area("hooks", "Hooks", "Calls by platforms.", access=Access.WEBHOOK)
UNKNOWN = "0" * 32


class NotePath(Model):
    note_id: Annotated[str, AfterValidator(NOTE.validate)]
    """A note of the user."""


class Note(Model):
    text: str = Field(max_length=10)


class SaveQuery(Model):
    copies: QueryInt = 1


class Saved(Model):
    user_id: str
    note_id: str
    text: str
    copies: int


class HookPath(Model):
    config: str
    """The config of the platform."""


class Received(Model):
    app_id: str
    config: str
    body: str


async def save(call: Call, query: Query[SaveQuery], path: Path[NotePath], body: Body[Note]) -> Saved:
    """Save a note."""
    return Saved(user_id=call.caller.user, note_id=path.note_id, text=body.text, copies=query.copies)


async def pay(call: Call) -> Empty:
    """Pay a user."""
    return Empty()


async def locate(call: Call) -> Json[Received]:
    """Locate a user."""
    return Json({"app_id": call.app_id, "config": "", "body": call.caller.user}, {"X-Place": "here"})


async def upload(call: Call, raw: RawBody) -> None:
    """Upload a file."""
    assert raw == b"\xff\x00"


async def receive(call: Call, path: Path[HookPath], raw: RawBody) -> Received:
    """Receive a payment."""
    return Received(app_id=call.app_id, config=path.config, body=raw.hex())


async def bind(call: Call) -> None:
    """Bind an identity."""
    raise ConfigInvalid("console is broken", bp_auth={"bp_auth_token": "ba_1"})


SAVE = Endpoint(
    "POST", "/bp/note/{note_id}", save, NOTES, limit=Limit("signup", by="note_id"), errors=(NoteNotFound,)
)
ROWS = [
    *ACCOUNT_ROUTES,
    SAVE,
    alias(SAVE, "/bp/notes/{note_id}"),
    Endpoint("POST", "/bp/server/user/{user_id}/payout/", pay, NOTES),
    Endpoint("GET", "/bp/location", locate, replace(NOTES, unknown_user_error=None)),
    Endpoint("PUT", "/bp/upload", upload, replace(NOTES, s2s=False)),
    Endpoint("POST", "/bp/webhook/pay/{app_id}/{config}", receive, HOOKS, body_bytes=20),
    Endpoint("POST", "/bp/bind", bind, replace(NOTES, access=Access.SIGNED)),
]


@pytest.fixture
async def small(services: Services, listener: socket.socket) -> AsyncIterator[Server]:
    async with running_server(services, listener, ROWS) as running:
        yield running


async def refused(small: Server, method: str, path: str, **options: Any) -> tuple[int, str]:
    status, answer = await ask(small, method, path, **options)
    return status, answer["error"]["message"]


async def test_a_handler_gets_the_inputs_in_its_signature_on_each_path(small: Server) -> None:
    uid, token = await small.login()
    session, note_id = {"X-Service-Session-Token": token}, new_id()
    saved = {"user_id": uid, "note_id": note_id, "text": "Hello", "copies": 2}
    for path, headers in (
        (f"/bp/note/{note_id}", session),
        (f"/bp/notes/{note_id}/", session),
        (f"/bp/server/user/{uid}/note/{note_id}", server_token()),
        (f"/bp/server/user/{uid}/notes/{note_id}", server_token(scope="notes")),
    ):
        body = {"headers": headers, "params": {"copies": 2}, "json": {"text": "Hello"}}
        assert await ask(small, "POST", path, **body) == (200, saved), path


async def test_checks_of_a_row_have_a_fixed_order(small: Server) -> None:
    uid, token = await small.login()
    session = {"X-Service-Session-Token": token}
    wrong_body, good = {"json": {}}, {"json": {"text": ""}}
    wrong_query = {**good, "params": {"copies": "x"}}
    no_number = (400, "invalid_parameter: copies must be an integer")

    async def of(path: str, headers: dict[str, str], options: dict[str, Any]) -> tuple[int, str]:
        return await refused(small, "POST", path, headers=headers, **options)

    assert await of("/bp/note/1", session, wrong_body) == (400, "invalid_parameter: text is required")
    assert await of("/bp/note/1", session, wrong_query) == no_number
    unknown_user = f"/bp/server/user/{UNKNOWN}/note/1"
    assert await of(unknown_user, server_token(), wrong_query) == no_number
    assert await of(unknown_user, server_token(), good) == (
        404,
        f"item_not_found: user {UNKNOWN} does not exist",
    )
    no_note = (404, "item_not_found: note 1 does not exist")
    assert await of("/bp/note/1", session, good) == no_note
    assert await of(f"/bp/server/user/{uid}/note/1", server_token(), good) == no_note


async def test_rate_is_counted_for_each_user_and_value_of_the_field(small: Server) -> None:
    await small.services.configs.put(
        "default",
        "limits",
        "default",
        {"rates": {"signup": {"count": 2, "per_s": 3600}}},
        author="tests",
        origin=COMMAND,
    )
    callers = [{"X-Service-Session-Token": (await small.login())[1]} for _ in range(2)]
    notes = [new_id(), new_id()]

    async def status(caller: int, note: int, *, path: str = "note") -> int:
        url, body = f"/bp/{path}/{notes[note]}", {"headers": callers[caller], "json": {"text": ""}}
        return (await ask(small, "POST", url, **body))[0]

    assert [await status(0, 0), await status(0, 0), await status(0, 0)] == [200, 200, 429]
    assert await status(0, 0, path="notes") == 429, "an alias has the rate of its row"
    assert [await status(0, 1), await status(1, 0)] == [200, 200]


async def test_s2s_only_row_accepts_server_tokens_of_its_scope_only(small: Server) -> None:
    uid, token = await small.login()
    path, session = f"/bp/server/user/{uid}/payout/", {"X-Service-Session-Token": token}
    assert await ask(small, "POST", path, headers=server_token(scope="ai notes")) == (200, {})
    assert (await ask(small, "POST", path.rstrip("/"), headers=server_token()))[0] == 200
    assert (await refused(small, "POST", path, headers=session))[0] == 401
    assert await refused(small, "POST", path, headers=server_token(scope="ai")) == (
        403,
        "permission_denied: scope of X-Service-Auth-Token does not cover notes",
    )
    assert (await refused(small, "POST", "/bp/payout", headers=session))[0] == 404


async def test_users_of_s2s_paths_are_not_looked_up_if_any_is_accepted(small: Server) -> None:
    url = f"{small.url}/bp/server/user/anybody/location"
    async with small.http.get(url, headers=server_token()) as response:
        assert (response.status, response.headers["X-Place"]) == (200, "here")
        assert (await response.json())["body"] == "anybody"


async def test_raw_body_arrives_as_it_was_sent(small: Server) -> None:
    _, token = await small.login()
    headers = {"X-Service-Session-Token": token}
    assert await ask(small, "PUT", "/bp/upload", headers=headers, data=b"\xff\x00") == (200, None)


async def test_webhook_takes_its_app_from_the_path_and_needs_no_header(small: Server) -> None:
    await small.services.configs.put(
        "default", "auth", "default", {"sign_keys": [{"id": "k", "key": "k" * 32}]}, author="tests", origin=COMMAND
    )
    path, raw = "/bp/webhook/pay/default/Default", b'{"a": \xff'
    received = {"app_id": "default", "config": "Default", "body": raw.hex()}
    assert await ask(small, "POST", path, data=raw) == (200, received)
    assert await ask(small, "POST", path, data=raw, headers={"X-Service-App-Id": "other"}) == (200, received)
    unknown = await refused(small, "POST", "/bp/webhook/pay/other/Default", data=raw)
    assert unknown == (400, "app_not_found: app other does not exist")
    assert (await refused(small, "POST", path, data=b"x" * 21)) == (
        413,
        "invalid_parameter: body exceeds 20 bytes",
    )


async def test_error_may_have_bp_auth_beside_it_and_the_status_of_its_area(small: Server) -> None:
    status, answer = await ask(small, "POST", "/bp/bind")
    assert (status, answer) == (
        417,
        {
            "error": {"error_type": "config_invalid", "message": "config_invalid: console is broken"},
            "bp_auth": {"bp_auth_token": "ba_1"},
        },
    )


def test_the_reference_describes_each_row() -> None:
    document = openapi(ROWS, public_url="https://parley.example")
    paths = document["paths"]

    def reported(path: str, method: str = "post") -> tuple[Any, ...]:
        operation = paths[path][method]
        return tuple(operation.get(name) for name in ("summary", "tags", "security", "deprecated"))

    pair = [{"session": [], "sign": []}]
    assert reported("/bp/note/{note_id}") == ("Save a note", ["notes"], pair, None)
    assert reported("/bp/notes/{note_id}") == ("Save a note", ["notes"], pair, True)
    server = [{"server": ["notes"]}]
    s2s = "/bp/server/user/{user_id}"
    assert reported(f"{s2s}/note/{{note_id}}") == ("Save a note (S2S)", ["s2s_notes"], server, None)
    assert reported(f"{s2s}/notes/{{note_id}}") == ("Save a note (S2S)", ["s2s_notes"], server, True)
    assert reported(f"{s2s}/payout/") == ("Pay a user (S2S)", ["s2s_notes"], server, None)
    assert reported("/bp/webhook/pay/{app_id}/{config}") == ("Receive a payment (webhook)", ["hooks"], [], None)
    deprecated = paths["/bp/notes/{note_id}"]["post"]["description"]
    assert deprecated == "Saves a note. Deprecated path of `POST /bp/note/{note_id}`."
    described = {
        parameter["name"]: parameter["description"]
        for parameter in paths[f"{s2s}/note/{{note_id}}"]["post"]["parameters"][:2]
    }
    assert described == {"user_id": "The user on whose behalf the call is made.", "note_id": "A note of the user."}
    hook = paths["/bp/webhook/pay/{app_id}/{config}"]["post"]
    assert [parameter.get("name") for parameter in hook["parameters"]] == ["app_id", "config", None, None]
    groups = {group["name"]: group["tags"] for group in document["x-tagGroups"]}
    assert groups["Apps"] == ["account", "account_email", "account_identities", "notes"]
    assert groups["Webhooks"] == ["hooks"]
    assert "s2s_notes" in groups["App servers"]
    ids = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(set(ids)) == len(ids) == sum(len(row.paths) for row in ROWS)


@pytest.mark.xdist_group("openapi")  # The worker that has imported the validator.
def test_document_of_all_kinds_of_rows_is_valid() -> None:
    from openapi_spec_validator import validate  # noqa: PLC0415 - slow to import, for each worker of the tests

    validate(openapi(ROWS, public_url="https://parley.example"))
