"""Each endpoint of images answers with each error that its row of the route table lists."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from app.ai.image_tasks import IMAGE_WEBHOOKS
from app.ai.routes import AI_ROUTES
from app.http.endpoint import Endpoint
from app.http.errors import DeactivationPending, InvalidApiVersion, UserNotFound, status_of
from app.http.paths import is_server_path
from app.http.row_errors import errors_of
from app.http.webhooks import InvalidSignature, PlatformNotFound, WebhookUnverified, webhook_row
from storage import sessions
from storage.errors import AnswerNotKept, KeyReused, RequestRunning
from storage.image_tasks import ImageTaskNotFound
from storage.objects.contract import ObjectsError, ObjectsUnavailable
from storage.quotas import QuotaUsed
from streams.wire.errors import (
    AppNotFound,
    AuthFailed,
    BackendUnavailable,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InternalError,
    InvalidParameter,
    InvalidSession,
    PermissionDenied,
    RateLimited,
    TooLarge,
    Unavailable,
    ValkeyError,
    ValkeyUnavailable,
)
from tests.app.callers import ask, token
from tests.app.images.studio import IMAGINE, Studio
from tests.app.operators import Operator
from tests.config_stores import store_unchecked
from tests.servers import SERVER_KEY

HOOK = webhook_row(IMAGE_WEBHOOKS)
ROWS: dict[tuple[str, str], Endpoint] = {
    (row.method, path): row for row in (*AI_ROUTES, HOOK) if row.area.group != "ai" for path in row.paths
}
ELSEWHERE = {
    InternalError: "only a bug causes it",
    ValkeyError: "no endpoint of images reports it: limits are counted in the process without Valkey",
    ValkeyUnavailable: "the same",
    DatabaseUnavailable: "the tests of money stop the database",
    Unavailable: "`tests/app/ai/test_large_responses.py` does not read",
    ObjectsUnavailable: "only a disk that hangs, or a lost bucket, causes it",
    WebhookUnverified: "the proof needs no call",
}
"""Errors that one test causes for all rows, or none can."""
Answer = tuple[int, Any]


@dataclass
class Case:
    studio: Studio
    place: tuple[str, str]
    uid: str
    task_id: str

    @property
    def of_server(self) -> bool:
        return is_server_path(self.place[1])

    async def ask(self, *, key: str = "", body: Any = None, path: str = "", **headers: str) -> Answer:
        """Send a request that would succeed, with changes."""
        method, template = self.place
        at = path or template
        values = {"user_id": self.uid, "task_id": self.task_id, "app_id": "default", "config": self.studio.account}
        for name, value in values.items():
            at = at.replace(f"{{{name}}}", value)
        given = token(scope="ai") if self.of_server else self.studio.sessions[self.uid]
        given = {**given, "Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        good = {"strategy": "pictures", "type": "imagine", "data": {"prompt": "a cat"}}
        json = (good if body is None else body) if method == "POST" else None
        return await ask(self.studio.server, method, at, json=json, headers=given)

    @asynccontextmanager
    async def config(self, kind: str, **fields: Any) -> AsyncIterator[None]:
        """Replace fields of the config `default` during the block, whether they are valid or not."""
        operator, path = Operator(self.studio.server), f"configs/default/{kind}/default"
        usual = (await operator("GET", path)).body["value"]
        await store_unchecked(self.studio.server.services, kind, "default", {**usual, **fields})
        try:
            yield
        finally:
            keys = {"server_keys": [{"kid": "development", "alg": "HS256", "secret": SERVER_KEY}]}
            assert (await operator.put(path, usual | (keys if kind == "auth" else {}))).status == 200

    @asynccontextmanager
    async def broken_account(self) -> AsyncIterator[None]:
        name = self.studio.account
        await self.studio.run(_BREAK, name)
        await self.studio.run(_CHANGE, name)
        await self.studio.server.services.configs.refresh()
        try:
            yield
        finally:
            await self.studio.configure()


_BREAK = """
update config_revisions set value = '{}' where kind = 'vendor_accounts' and (name, revision) in (
    select name, revision from configs where kind = 'vendor_accounts' and name = $1)
"""
_CHANGE = """
with next as (update config_changes set change = change + 1 returning change)
update configs set change = next.change from next where kind = 'vendor_accounts' and name = $1
"""
Cause = Callable[[Case], Awaitable[Answer]]
CAUSES: dict[type, Cause] = {}


def causes(error: type) -> Callable[[Cause], Cause]:
    def declare(cause: Cause) -> Cause:
        CAUSES[error] = cause
        return cause

    return declare


@causes(InvalidApiVersion)
async def of_another_version(case: Case) -> Answer:
    return await case.ask(X_Service_Api_Version="2")


@causes(AppNotFound)
async def of_an_unknown_app(case: Case) -> Answer:
    return await case.ask(path=case.place[1].replace("{app_id}", "none"), X_Service_App_Id="none")


@causes(ConfigInvalid)
async def without_a_usable_config(case: Case) -> Answer:
    if case.place[0] == "POST" and case.place[1] != HOOK.path:
        body = {"strategy": "none", "type": "imagine", "data": {"prompt": "a cat"}}
        return await case.ask(body=body)
    if case.place[1] == HOOK.path:
        async with case.broken_account():
            return await case.ask()
    auth = {"server_keys": [{"kid": "development", "alg": "EdDSA"}]} if case.of_server else {"require_sign": True}
    async with case.config("auth", **auth):
        return await case.ask()


@causes(AuthFailed)
async def with_a_wrong_proof_of_the_caller(case: Case) -> Answer:
    if case.of_server:
        return await case.ask(X_Service_Auth_Token="wrong")
    async with case.config("auth", require_sign=True, sign_keys=[{"id": "one", "key": "a key of the app"}]):
        return await case.ask(X_Service_Sign="wrong")


@causes(PermissionDenied)
async def with_a_token_of_another_scope(case: Case) -> Answer:
    return await case.ask(**{name.replace("-", "_"): text for name, text in token(scope="mail").items()})


@causes(UserNotFound)
async def of_an_unknown_user(case: Case) -> Answer:
    return await case.ask(path=case.place[1].replace("{user_id}", "0" * 32))


@causes(InvalidSession)
async def with_an_ended_session(case: Case) -> Answer:
    return await case.ask(X_Service_Session_Token="st_ended")


@causes(DeactivationPending)
async def of_a_frozen_user(case: Case) -> Answer:
    other = Case(case.studio, case.place, await case.studio.user(), case.task_id)
    services = case.studio.server.services
    async with services.database.transaction() as conn:
        freeze = "update users set status = 'frozen', freeze_time = now(), close_time = now() where uid = $1"
        await conn.execute(freeze, other.uid)
        await sessions.reread(conn, "default", other.uid, cache=services.sessions)
    return await other.ask()


@causes(InvalidParameter)
async def with_an_encoded_body(case: Case) -> Answer:
    return await case.ask(Content_Encoding="gzip")


@causes(TooLarge)
async def with_a_large_body(case: Case) -> Answer:
    method, _ = case.place
    if method == "GET":
        at = case.place[1].replace("{user_id}", case.uid).replace("{task_id}", case.task_id)
        headers = token(scope="ai") if case.of_server else case.studio.sessions[case.uid]
        return await ask(case.studio.server, method, at, data=b" " * 200_000, headers=headers)
    return await case.ask(body={"strategy": "pictures", "type": "imagine", "data": {"prompt": "x" * 400_000}})


@causes(DatabaseError)
async def while_tables_are_missing(case: Case) -> Answer:
    await case.studio.run("alter table image_tasks rename to image_tasks_away")
    await case.studio.run("alter table webhooks rename to webhooks_away")
    try:
        proof = case.studio.asked()[0]["webhook_secret"] if case.place[1] == HOOK.path else ""
        return await case.ask(body={"task_id": "1"} if proof else None, X_Webhook_Secret=proof)
    finally:
        await case.studio.run("alter table webhooks_away rename to webhooks")
        await case.studio.run("alter table image_tasks_away rename to image_tasks")


async def _with_a_used_key(case: Case, change: str) -> str:
    key = f"{case.place[1]} {change}"[:200].replace(" ", "_")
    status, answer = await case.ask(key=key)
    assert status == 200, answer
    await case.studio.run(f"update idempotency_keys set {change}")  # noqa: S608
    return key


@causes(KeyReused)
async def with_the_key_of_another_request(case: Case) -> Answer:
    key = await _with_a_used_key(case, "app_id = app_id")
    return await case.ask(key=key, body={"strategy": "pictures", "type": "imagine", "data": {"prompt": "a dog"}})


@causes(RequestRunning)
async def while_an_earlier_call_runs(case: Case) -> Answer:
    return await case.ask(key=await _with_a_used_key(case, "answered_at = null, status = null, headers = null"))


@causes(AnswerNotKept)
async def after_a_response_that_was_too_large_to_keep(case: Case) -> Answer:
    return await case.ask(key=await _with_a_used_key(case, "too_large = true, body = null"))


@causes(RateLimited)
async def more_often_than_allowed(case: Case) -> Answer:
    rate = "server" if case.of_server else "image"
    async with case.config("limits", rates={rate: {"count": 1, "per_s": 3600}}):
        for _ in range(3):
            answer = await case.ask()
        return answer


@causes(ImageTaskNotFound)
async def of_an_unknown_task(case: Case) -> Answer:
    body = {"strategy": "pictures", "type": "reroll", "data": {"origin_task_id": "0" * 32}}
    return await case.ask(body=body, path=case.place[1].replace("{task_id}", "0" * 32))


@causes(QuotaUsed)
async def without_units(case: Case) -> Answer:
    await case.studio.configure(quota={"asset": "coins"})
    try:
        return await case.ask()
    finally:
        await case.studio.configure()


@causes(BackendUnavailable)
async def while_the_host_fails(case: Case) -> Answer:
    await case.studio.faulty(fault="server_error")
    try:
        return await case.ask()
    finally:
        await case.studio.configure()


@causes(ObjectsError)
async def while_files_cannot_be_read(case: Case) -> Answer:
    [row] = await case.studio.run("select image_key from image_tasks where task_id = $1", case.task_id)
    folder = case.studio.server.services.settings.data_dir / "objects"
    file = folder / row["image_key"]
    content = file.read_bytes()
    file.unlink()
    file.symlink_to(file)  # Reading it is an error of the operating system.
    try:
        data = {"origin_task_id": case.task_id, "mask": row["image_key"], "prompt": "a hat"}
        return await case.ask(body={"strategy": "pictures", "type": "inpaint", "data": data})
    finally:
        file.unlink()
        file.write_bytes(content)


@causes(InvalidSignature)
async def without_a_proof(case: Case) -> Answer:
    return await case.ask(body={"task_id": "1"})


@causes(PlatformNotFound)
async def of_an_unknown_account(case: Case) -> Answer:
    return await case.ask(path=case.place[1].replace("{config}", "none"), body={"task_id": "1"})


def errors_at(place: tuple[str, str]) -> list[type]:
    row, path = ROWS[place], place[1]
    is_limited = row.limit is not None or is_server_path(path)
    return [
        error
        for error in dict.fromkeys(errors_of(row, path))
        if error not in ELSEWHERE and (is_limited or error is not RateLimited)
    ]


def test_each_error_has_a_cause() -> None:
    assert [error for place in ROWS for error in errors_at(place) if error not in CAUSES] == []


def test_the_route_table_lists_what_the_interface_does() -> None:
    listed = {error.error_type for error in errors_of(ROWS["POST", IMAGINE], IMAGINE)}
    assert {"invalid_parameter", "item_not_found", "config_invalid", "api_rate_limit", "ai_free_limit"} <= listed


@pytest.mark.parametrize("place", sorted(ROWS), ids=" ".join)
async def test_each_listed_error_is_answered(studio: Studio, place: tuple[str, str]) -> None:
    uid = await studio.user()
    await studio.put("limits", "default", {"rates": {"image": {"count": 1000, "per_s": 1}}})
    case, wrong = Case(studio, place, uid, (await studio.make(uid, "imagine", {"prompt": "a cat"}))["task_id"]), []
    for error in errors_at(place):
        status, answer = await CAUSES[error](case)
        found = (status, answer["error"]["error_type"] if answer and "error" in answer else None)
        if found != (status_of(error, ROWS[place].area.statuses), error.error_type):
            wrong.append(f"{error.__name__}: {found} {answer}"[:200])
    assert wrong == []
