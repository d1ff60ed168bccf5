"""Each endpoint of images answers with each error that its row of the route table lists."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from actors.clients.strategies import StrategyNotFound
from app.ai.images.tasks import IMAGE_WEBHOOKS
from app.ai.routes import IMAGE_ROUTES
from app.http.errors import DeactivationPending
from app.http.paths import is_server_path
from app.http.rows.endpoint import Endpoint
from app.http.rows.row_errors import errors_of
from app.http.rows.webhooks import InvalidSignature, PlatformNotFound, WebhookUnverified, webhook_row
from storage.assets.quotas import QuotaUsed
from storage.errors import AnswerNotKept, KeyReused, RequestRunning
from storage.objects.contract import ObjectsError, ObjectsUnavailable
from storage.tasks.image_tasks import ImageTaskNotFound
from streams.wire.errors import (
    AppNotFound,
    BackendUnavailable,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InvalidParameter,
    TooLarge,
)
from tests.app.ai.images.studio import IMAGINE, Studio
from tests.app.callers import ask, token
from tests.app.http.rows.listed_errors import (
    WITHOUT_VALKEY,
    Answer,
    ErrorTable,
    Place,
    frozen_user,
    stored_as,
    without_a_key_of_auth,
    without_tables,
    wrong_answers,
)
from tests.running.servers import Server

HOOK = webhook_row(IMAGE_WEBHOOKS)
TABLE = ErrorTable(
    (*IMAGE_ROUTES, HOOK),
    elsewhere={
        **WITHOUT_VALKEY,
        DatabaseUnavailable: "the tests of money stop the database",
        ObjectsUnavailable: "only a disk that hangs, or a lost bucket, causes it",
        WebhookUnverified: "the proof needs no call",
    },
)


@dataclass(frozen=True)
class Case:
    studio: Studio
    place: Place
    uid: str
    task_id: str

    @property
    def server(self) -> Server:
        return self.studio.server

    @property
    def row(self) -> Endpoint:
        return TABLE.rows[self.place]

    @property
    def path(self) -> str:
        return self.place[1]

    async def ask(
        self, *, uid: str = "", data: bytes | None = None, body: Any = None, at: str = "", **headers: str
    ) -> Answer:
        """Send a request that would succeed, with changes."""
        method = self.place[0]
        at = at or self.path
        values = {
            "user_id": uid or self.uid,
            "task_id": self.task_id,
            "app_id": "default",
            "config": self.studio.account,
        }
        for name, value in values.items():
            at = at.replace(f"{{{name}}}", value)
        given = token(scope="ai") if is_server_path(self.path) else self.studio.sessions[self.uid]
        given = {**given, "Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        good = {"strategy": "pictures", "type": "imagine", "data": {"prompt": "a cat"}}
        sent: dict[str, Any] = {"json": good if body is None else body} if method == "POST" else {}
        if data is not None:
            sent = {"data": data}
        return await ask(self.server, method, at, headers=given, **sent)


@TABLE.causes(AppNotFound)
async def of_an_unknown_app(case: Case) -> Answer:
    return await case.ask(at=case.path.replace("{app_id}", "none"), X_Service_App_Id="none")


@TABLE.causes(ConfigInvalid)
async def without_a_usable_config(case: Case) -> Answer:
    if case.place[0] == "POST":
        async with stored_as(case.server, "vendor_accounts", case.studio.account, {}):
            return await case.ask()
    return await without_a_key_of_auth(case)


@TABLE.causes(StrategyNotFound)
async def by_a_strategy_that_does_not_exist(case: Case) -> Answer:
    return await case.ask(body={"strategy": "none", "type": "imagine", "data": {"prompt": "a cat"}})


@TABLE.causes(DeactivationPending)
async def of_a_frozen_user(case: Case) -> Answer:
    uid, case.studio.sessions[uid] = await frozen_user(case.server)
    return await replace(case, uid=uid).ask()


@TABLE.causes(InvalidParameter)
async def with_an_encoded_body(case: Case) -> Answer:
    return await case.ask(Content_Encoding="gzip")


@TABLE.causes(TooLarge)
async def with_a_large_body(case: Case) -> Answer:
    if case.place[0] == "GET" or case.place[1] == HOOK.path:
        return await case.ask(data=b" " * 400_000)
    return await case.ask(body={"strategy": "pictures", "type": "imagine", "data": {"prompt": "x" * 400_000}})


@TABLE.causes(DatabaseError)
async def while_tables_are_missing(case: Case) -> Answer:
    async with without_tables(case.server, "image_tasks", "webhooks"):
        proof = case.studio.asked()[0]["webhook_secret"] if case.place[1] == HOOK.path else ""
        return await case.ask(body={"task_id": "1"} if proof else None, X_Webhook_Secret=proof)


async def _with_a_used_key(case: Case, change: str) -> str:
    key = f"{case.place[1]} {change}"[:200].replace(" ", "_")
    status, answer = await case.ask(Idempotency_Key=key)
    assert status == 200, answer
    await case.studio.run(f"update idempotency_keys set {change}")
    return key


@TABLE.causes(KeyReused)
async def with_the_key_of_another_request(case: Case) -> Answer:
    key = await _with_a_used_key(case, "app_id = app_id")
    return await case.ask(
        Idempotency_Key=key, body={"strategy": "pictures", "type": "imagine", "data": {"prompt": "a dog"}}
    )


@TABLE.causes(RequestRunning)
async def while_an_earlier_call_runs(case: Case) -> Answer:
    return await case.ask(
        Idempotency_Key=await _with_a_used_key(case, "answered_at = null, status = null, headers = null")
    )


@TABLE.causes(AnswerNotKept)
async def after_a_response_that_was_too_large_to_keep(case: Case) -> Answer:
    return await case.ask(Idempotency_Key=await _with_a_used_key(case, "too_large = true, body = null"))


@TABLE.causes(ImageTaskNotFound)
async def of_an_unknown_task(case: Case) -> Answer:
    body = {"strategy": "pictures", "type": "reroll", "data": {"origin_task_id": "0" * 32}}
    return await case.ask(body=body, at=case.path.replace("{task_id}", "0" * 32))


@TABLE.causes(QuotaUsed)
async def without_units(case: Case) -> Answer:
    await case.studio.configure(quota={"asset": "coins"})
    try:
        return await case.ask()
    finally:
        await case.studio.configure()


@TABLE.causes(BackendUnavailable)
async def while_the_host_fails(case: Case) -> Answer:
    await case.studio.faulty(fault="server_error")
    try:
        return await case.ask()
    finally:
        await case.studio.configure()


@TABLE.causes(ObjectsError)
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


@TABLE.causes(InvalidSignature)
async def without_a_proof(case: Case) -> Answer:
    return await case.ask(body={"task_id": "1"})


@TABLE.causes(PlatformNotFound)
async def of_an_unknown_account(case: Case) -> Answer:
    return await case.ask(at=case.path.replace("{config}", "none"), body={"task_id": "1"})


def test_the_route_table_lists_what_the_interface_does() -> None:
    listed = {error.error_type for error in errors_of(TABLE.rows["POST", IMAGINE], IMAGINE)}
    assert {"invalid_parameter", "item_not_found", "config_invalid", "api_rate_limit", "ai_free_limit"} <= listed


@pytest.mark.folder
@pytest.mark.parametrize("place", TABLE.places, ids=" ".join)
async def test_each_listed_error_is_answered(studio: Studio, place: Place) -> None:
    uid = await studio.user()
    await studio.put("limits", "default", {"rates": {"image": {"count": 1000, "per_s": 1}}})
    case = Case(studio, place, uid, (await studio.make(uid, "imagine", {"prompt": "a cat"}))["task_id"])

    async def prepared() -> Case:
        return case

    assert await wrong_answers(TABLE.listed_at(place), prepared) == []
