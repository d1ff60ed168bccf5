"""The admin API for configs."""

import asyncio
from typing import Any

import pytest

from storage.configs.kinds import KINDS
from storage.configs.kinds.speech import SPEECH
from tests.app.operators import Operator
from tests.running.servers import ADMIN_TOKEN, Server

MARK = {"secret": True}
ACCOUNT = "configs/default/vendor_accounts/main"
VOICE = "configs/default/speech/voice"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def operator(server: Server) -> Operator:
    return Operator(server)


ROWS = [
    ("GET", "kinds"),
    ("GET", "configs"),
    ("GET", VOICE),
    ("PUT", VOICE),
    ("DELETE", VOICE),
    ("POST", f"{VOICE}/validate"),
    ("GET", f"{VOICE}/references"),
    ("GET", f"{VOICE}/revisions"),
    ("GET", f"{VOICE}/diff?from=1&to=2"),
    ("POST", f"{VOICE}/rollback"),
]


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer x", f"Basic {ADMIN_TOKEN}", f"Bearer {ADMIN_TOKEN}x"]
)
async def test_without_the_operators_token_all_calls_are_refused(operator, authorization):
    for method, path in ROWS:
        answer = await operator(method, path, {"value": {"account": "a"}}, Authorization=authorization)
        assert (answer.status, answer.body["error"]["error_type"]) == (401, "auth_failed"), path
    assert not operator.server.services.configs.exists(SPEECH, "default", "voice")


async def test_every_kind_is_listed_with_the_schema_of_its_value(operator):
    answer = await operator("GET", "kinds")
    assert answer.status == 200
    kinds = {kind["kind"]: kind for kind in answer.body["kinds"]}
    assert kinds.keys() == KINDS.keys()
    assert kinds["speech"]["title"] == "Text to speech"
    assert "names" not in kinds["speech"]
    assert "search_vendor_id" in kinds["sign_in"]["names"]
    assert "account" in kinds["speech"]["schema"]["required"]
    secret = kinds["vendor_accounts"]["schema"]["properties"]["api_key"]["anyOf"][0]
    assert secret["writeOnly"] is True


async def test_every_field_of_every_kind_has_a_description(operator):
    answer = await operator("GET", "kinds")
    fields = _descriptions({kind["kind"]: kind["schema"] for kind in answer.body["kinds"]})
    assert len(fields) > 80
    assert [field for field, description in fields.items() if not description] == []


async def test_every_option_of_every_platform_has_a_description(operator):
    answer = await operator("GET", "platforms")
    fields = _descriptions(
        {
            f"{row['platform']} {capability}": schema
            for row in answer.body["platforms"]
            for capability, schema in row["options"].items()
        }
    )
    assert len(fields) > 30
    assert [field for field, description in fields.items() if not description] == []


def _descriptions(schemas: dict[str, Any]) -> dict[tuple[str, str], str | None]:
    """Return the description of each field of models, by the name of the model and of the field."""
    models = schemas.copy()
    for schema in schemas.values():
        models |= schema.get("$defs", {})
    return {
        (name, field): described.get("description")
        for name, schema in models.items()
        for field, described in schema.get("properties", {}).items()
    }


async def test_a_written_config_is_read_unchanged_and_used_immediately(operator):
    await operator.put("configs/default/vendor_accounts/a", {"platform": "vendor_a_audio", "base_url": "http://a"})
    value = {"account": "a", "voice": "x", "language_code": None, "options": {"style": None}}
    written = await operator("PUT", VOICE, {"value": value, "comment": "first"}, X_Admin_Author="ada")
    assert written.status == 200
    read = await operator("GET", VOICE)
    assert read == written
    moment = read.body.pop("updated_at")
    assert moment.endswith("Z")
    assert read.body == {
        "app": "default",
        "kind": "speech",
        "name": "voice",
        "revision": 1,
        "value": value,
        "author": "ada",
        "comment": "first",
    }
    assert operator.server.services.configs.get(SPEECH, "default", "voice").value.voice == "x"


async def test_configs_are_listed_by_app_and_kind(operator):
    await operator.put("configs/two/apps/default", {"title": "Two"})
    await operator.put("configs/two/vendor_accounts/a", {"platform": "vendor_c"})
    await operator.put("configs/two/speech/b", {"account": "a"})
    await operator.put("configs/two/speech/a", {"account": "a"})
    rows = (await operator("GET", "configs?app=two&kind=speech")).body["configs"]
    assert [(row["app"], row["kind"], row["name"], row["revision"]) for row in rows] == [
        ("two", "speech", "a", 1),
        ("two", "speech", "b", 1),
    ]
    assert rows[0].keys() == {"app", "kind", "name", "revision", "author", "comment", "updated_at"}
    assert rows[0]["author"] == "admin"
    everything = (await operator("GET", "configs")).body["configs"]
    assert {row["app"] for row in everything} == {"default", "two"}
    assert (await operator("GET", "configs?kind=poetry")).error[0] == 404
    assert (await operator("GET", "configs?app=three")).error == (404, "item_not_found: app three does not exist")


async def test_secrets_are_never_shown_and_writing_the_mark_back_keeps_them(operator):
    await operator.put(ACCOUNT, {"platform": "vendor_b_llm", "api_key": "sk-very-secret"})
    read = await operator("GET", ACCOUNT)
    assert read.body["value"] == {"platform": "vendor_b_llm", "api_key": MARK}
    await operator.put(ACCOUNT, {**read.body["value"], "concurrency": 2})
    await operator.put(ACCOUNT, {"platform": "vendor_b_llm", "api_key": "sk-other-secret"})
    await operator("POST", f"{ACCOUNT}/rollback", {"revision": 2})
    answers = [
        await operator("GET", path)
        for path in (
            ACCOUNT,
            f"{ACCOUNT}?revision=1",
            f"{ACCOUNT}/revisions",
            f"{ACCOUNT}/diff?from=1&to=3",
            "configs",
        )
    ]
    assert "-secret" not in repr(answers)
    diff = answers[3].body
    assert diff == {"from": 1, "to": 3, "changes": [{"path": "api_key", "before": MARK, "after": MARK}]}
    account = operator.server.services.configs.get(KINDS["vendor_accounts"], "default", "main").value
    assert (account.api_key.get_secret_value(), account.concurrency) == ("sk-very-secret", 2)


async def test_revisions_can_be_read_compared_and_restored(operator):
    await operator.put(VOICE, {"account": "a", "voice": "x"}, X_Admin_Author="ada")
    await operator.put(VOICE, {"account": "a", "speed": 2}, X_Admin_Author="bob")
    revisions = (await operator("GET", f"{VOICE}/revisions")).body["revisions"]
    assert [(entry["revision"], entry["author"], entry["deleted"]) for entry in revisions] == [
        (2, "bob", False),
        (1, "ada", False),
    ]
    assert (await operator("GET", f"{VOICE}?revision=1")).body["value"] == {"account": "a", "voice": "x"}
    assert (await operator("GET", f"{VOICE}/diff?from=1&to=2")).body["changes"] == [
        {"path": "voice", "before": "x"},
        {"path": "speed", "after": 2},
    ]
    back = await operator("POST", f"{VOICE}/rollback", {"revision": 1})
    assert (back.status, back.body["revision"], back.body["value"]["voice"]) == (200, 3, "x")
    page = (await operator("GET", f"{VOICE}/revisions?before=3&size=1")).body
    assert ([entry["revision"] for entry in page["revisions"]], page["next"]) == ([2], 2)
    last = (await operator("GET", f"{VOICE}/revisions?before=2&size=1")).body
    assert ([entry["revision"] for entry in last["revisions"]], "next" in last) == ([1], False)


async def test_a_deleted_config_is_not_found_until_it_is_restored(operator):
    await operator.put(VOICE, {"account": "a"})
    deleted = await operator("DELETE", VOICE, X_Admin_Author="ada")
    assert (deleted.status, deleted.body) == (200, None)
    assert (await operator("GET", VOICE)).error == (404, "item_not_found: speech voice does not exist")
    revisions = (await operator("GET", f"{VOICE}/revisions")).body["revisions"]
    assert (revisions[0]["deleted"], revisions[0]["author"]) == (True, "ada")
    assert (await operator("POST", f"{VOICE}/rollback", {"revision": 1})).body["revision"] == 3


async def test_the_reason_of_a_deletion_is_kept_in_the_history_and_the_audit_log(operator):
    await operator.put(VOICE, {"account": "a"})
    await operator("DELETE", VOICE, X_Parley_Reason="Nobody uses it")
    revisions = (await operator("GET", f"{VOICE}/revisions")).body["revisions"]
    assert (revisions[0]["deleted"], revisions[0]["comment"]) == (True, "Nobody uses it")
    changes = (await operator("GET", "audit?action=config.delete")).body["changes"]
    assert changes[0]["reason"] == "Nobody uses it"


async def test_configs_that_name_a_config_are_listed(operator):
    await operator.put(ACCOUNT, {"platform": "local_audio"})
    for name, account in (("one", "main"), ("two", "main"), ("three", "other")):
        await operator.put(f"configs/default/pronunciation/{name}", {"accounts": [{"account": account}]})
    await operator.put(VOICE, {"account": "main"})
    assert (await operator("GET", f"{ACCOUNT}/references")).body["references"] == [
        {"app": "default", "kind": "pronunciation", "name": "one"},
        {"app": "default", "kind": "pronunciation", "name": "two"},
        {"app": "default", "kind": "speech", "name": "voice"},
    ]
    assert (await operator("GET", f"{VOICE}/references")).body["references"] == []
    assert (await operator("GET", "configs/default/poetry/x/references")).error == (
        404, "item_not_found: kind poetry does not exist",
    )  # fmt: skip


async def test_only_the_expected_revision_is_replaced(operator):
    await operator.put(VOICE, {"account": "a"})
    assert (await operator.put(VOICE, {"account": "b"}, If_Match='"1"')).status == 200
    late = [
        await operator.put(VOICE, {"account": "c"}, If_Match="1"),
        await operator("DELETE", VOICE, If_Match="1"),
        await operator("POST", f"{VOICE}/rollback", {"revision": 1}, If_Match="1"),
    ]
    message = "invalid_operation: If-Match is not the active revision"
    assert [answer.error for answer in late] == [(412, message)] * 3
    assert (await operator("GET", VOICE)).body["revision"] == 2


async def test_a_new_config_replaces_none_that_another_operator_has_made(operator):
    rivals = await asyncio.gather(*(operator.put(VOICE, {"account": name}, If_None_Match="*") for name in "abc"))
    assert sorted(answer.status for answer in rivals) == [200, 412, 412]
    message = "invalid_operation: If-None-Match does not allow to replace a config"
    assert {answer.error for answer in rivals if answer.status == 412} == {(412, message)}
    restored = await operator("POST", f"{VOICE}/rollback", {"revision": 1}, If_None_Match="*")
    assert restored.error == (412, message)
    assert (await operator("GET", VOICE)).body["revision"] == 1
    await operator("DELETE", VOICE)
    assert (await operator("POST", f"{VOICE}/rollback", {"revision": 1}, If_None_Match="*")).status == 200
    await operator("DELETE", VOICE)
    assert (await operator.put(VOICE, {"account": "d"}, If_None_Match="*")).body["revision"] == 5


async def test_validation_reports_every_fault_and_writes_nothing(operator):
    bad = {"speed": 9, "waits": {"between_s": 0}, "extra": 1}
    answer = await operator("POST", f"{VOICE}/validate", {"value": bad})
    assert answer.body["valid"] is False
    errors = {error["path"]: error["message"] for error in answer.body["errors"]}
    assert errors.keys() == {"account", "speed", "waits.between_s", "extra"}
    assert errors["account"] == "is required"
    good = await operator("POST", f"{VOICE}/validate", {"value": {"account": "local-audio"}})
    assert good.body == {"valid": True, "errors": [], "warnings": []}
    assert (await operator("GET", VOICE)).status == 404


@pytest.mark.parametrize(
    ("path", "value", "status", "message"),
    [
        (VOICE, {}, 400, "invalid_parameter: account is required"),
        (VOICE, {"account": "a", "price": {"input": "1"}}, 400, "invalid_parameter: price.input must be a number"),
        (
            "configs/default/apps/default",
            {"currency": "DEM"},
            400,
            "invalid_parameter: currency must be the ISO 4217 code of a current currency, such as EUR",
        ),
        (VOICE, {"account": "a", "acount": "a"}, 400, "invalid_parameter: acount is not a field"),
        (VOICE, [], 400, "invalid_parameter: value must be an object"),
        (
            VOICE,
            {"account": "local-audio", "languages": ["zh-TW", "english"]},
            400,
            "invalid_parameter: languages[1] must be a language code such as en-US",
        ),
        ("configs/default/poetry/x", {}, 404, "item_not_found: kind poetry does not exist"),
        ("configs/three/speech/x", {"account": "a"}, 400, "app_not_found: app three does not exist"),
        (
            ACCOUNT,
            {"platform": "vendor_b_llm", "api_key": MARK},
            400,
            "invalid_parameter: api_key has no stored secret to keep",
        ),
    ],
)
async def test_error_for_an_invalid_config_has_the_path_of_the_field(operator, path, value, status, message):
    assert (await operator.put(path, value)).error == (status, message)


@pytest.mark.parametrize("name", ["a%2Fb", "%2E%2E%2Fx", "a%20b", "%C3%A4", "x" * 65, ".hidden"])
async def test_an_invalid_name_is_refused(operator, name):
    status, message = (await operator.put(f"configs/default/speech/{name}", {"account": "a"})).error
    assert (status, message[:24]) in {(400, "invalid_parameter: name "), (404, "not_found: no such path ")}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", VOICE),
        ("GET", f"{VOICE}?revision=7"),
        ("DELETE", VOICE),
        ("GET", f"{VOICE}/revisions"),
        ("GET", f"{VOICE}/diff?from=1&to=2"),
        ("GET", "configs/default/poetry/x"),
        ("GET", "configs/three/speech/x"),
        ("GET", "configs/default/poetry/x/revisions"),
    ],
)
async def test_missing_records_are_not_found(operator, method, path):
    answer = await operator(method, path)
    assert (answer.status, answer.body["error"]["error_type"]) == (404, "item_not_found")


@pytest.mark.parametrize(
    ("method", "path", "headers", "field"),
    [
        ("GET", f"{VOICE}?revision=first", {}, "revision"),
        ("GET", f"{VOICE}?revision=0", {}, "revision"),
        ("GET", f"{VOICE}?revision=99999999999", {}, "revision"),
        ("GET", f"{VOICE}/diff?to=2", {}, "from"),
        ("GET", f"{VOICE}/revisions?size=0", {}, "size"),
        ("POST", f"{VOICE}/rollback", {}, "revision"),
        ("PUT", VOICE, {"If_Match": "newest"}, "If-Match"),
        ("PUT", VOICE, {"If_Match": "0"}, "If-Match"),
        ("PUT", VOICE, {"If_None_Match": '"1"'}, "If-None-Match"),
        ("PUT", VOICE, {"If_None_Match": "*", "If_Match": "1"}, "If-None-Match"),
        ("PUT", VOICE, {"X_Admin_Author": "a" * 65}, "X-Admin-Author"),
        ("PUT", VOICE, {"X_Admin_Author": "a\tb"}, "X-Admin-Author"),
    ],
)
async def test_a_wrong_parameter_is_named(operator, method, path, headers, field):
    body = {"value": {"account": "a"}} if method == "PUT" else {} if method == "POST" else None
    status, message = (await operator(method, path, body, **headers)).error
    assert (status, message.split()[:2]) == (400, ["invalid_parameter:", field])


async def test_the_list_shows_a_broken_config_which_can_be_repaired(operator):
    services = operator.server.services
    await operator.put(VOICE, {"account": "a", "speed": 2})
    async with services.database.connection() as conn:
        await conn.execute("""update config_revisions set value = '{"account": 1}' where name = 'voice'""")
        await conn.execute("update configs set change = change + 1000 where name = 'voice'")
    await services.configs.refresh()
    read = await operator("GET", VOICE)
    assert (read.status, read.body["fault"]) == (200, "account must be a string")
    rows = (await operator("GET", "configs?kind=speech")).body["configs"]
    assert [row["name"] for row in rows if "fault" in row] == ["voice"]
    async with operator.server.http.get(f"{operator.server.url}/metrics") as response:
        assert "\nparley_configs_broken 1.0\n" in await response.text()


async def test_a_changed_auth_config_applies_from_the_next_request(operator):
    url = f"{operator.server.url}/bp/user/login"
    statuses = []
    for require_sign in (False, True):
        keys = [{"id": "one", "key": "a key of the app"}]
        await operator.put("configs/default/auth/default", {"require_sign": require_sign, "sign_keys": keys})
        async with operator.server.http.post(url, json={"device": {"id": "x" * 20}}) as response:
            statuses.append(response.status)
    assert statuses == [200, 401]


async def test_the_list_is_filtered_sorted_and_paged_by_the_server(server: Server) -> None:
    operator = Operator(server)
    found = (await operator("GET", "configs?kind=conversation&sort=-name&size=1000")).body
    names = [row["name"] for row in found["configs"]]
    assert names == sorted(names, reverse=True)
    assert found["total"] == len(names) > 1
    page = (await operator("GET", "configs?kind=conversation&sort=-name&size=1&offset=1")).body
    assert ([row["name"] for row in page["configs"]], page["total"]) == (names[1:2], len(names))
    matching = (await operator("GET", f"configs?text={names[0].upper()}&size=1000")).body["configs"]
    assert names[0] in [row["name"] for row in matching]
    assert "total" not in (await operator("GET", "configs")).body
