"""Exported configs can be imported unchanged. An import of a folder writes all its configs or none."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.commands.config_files import Exported, export_folder, import_folder
from app.settings import Settings
from storage.configs.kinds.speech import SPEECH
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore
from storage.operators.audit import COMMAND
from streams.wire.errors import InvalidParameter, ServiceError
from tests.environment import core_packages
from tests.running.config_stores import api_key, store_of
from tests.running.forks import run

ENV = {"VENDOR_KEY": "sk-from-env"}
ACCOUNT = "default/vendor_accounts/main.yaml"


@pytest.fixture
async def configs(settings: Settings) -> AsyncIterator[ConfigStore]:
    async with store_of(settings) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small deployment as files."""
    root = tmp_path / "configs"
    write(root, "default/apps/default.yaml", "title: First\n")
    write(root, ACCOUNT, "platform: vendor_b_llm\napi_key: {env: VENDOR_KEY}\n")
    write(root, "default/conversation/talk.yaml", 'chat: {account: main, system_prompt: "a\\nb: ü"}\nspeech: s\n')
    write(
        root, "default/speech/s.yaml", "account: main\nspeed: 1.5\noptions: {extra: {pitch: null, style: [1, a]}}\n"
    )
    return root


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


async def import_configs(configs: ConfigStore, folder: Path, *, author: str = "ada", **options) -> dict[str, str]:
    """Import the folder. Return the outcome of each config, with the changed fields."""
    changes = await import_folder(configs, folder, author=author, env=options.pop("env", ENV), **options)
    return {"/".join(change.key): " ".join((change.outcome, *change.fields)) for change in changes}


async def test_an_import_adds_new_configs_and_reports_changes(configs, folder):
    added = await import_configs(configs, folder)
    assert list(added) == [
        "default/apps/default",
        "default/vendor_accounts/main",
        "default/speech/s",
        "default/conversation/talk",
    ]
    assert set(added.values()) == {"added"}
    assert api_key(configs) == "sk-from-env"
    assert set((await import_configs(configs, folder)).values()) == {"unchanged"}
    write(
        folder, "default/speech/s.yaml", "account: main\nvoice: x\noptions: {extra: {pitch: null, style: [1, b]}}\n"
    )
    changed = await import_configs(configs, folder, env={"VENDOR_KEY": "sk-other"})
    assert changed["default/speech/s"] == "changed speed options.extra.style[1] voice"
    assert changed["default/vendor_accounts/main"] == "changed api_key"
    assert changed["default/conversation/talk"] == "unchanged"
    assert configs.get(SPEECH, "default", "s").revision == 2
    assert (await configs.read(ConfigKey("default", "speech", "s"))).author == "ada"


async def test_exported_configs_are_imported_unchanged(configs, folder, settings, tmp_path):
    await import_configs(configs, folder)
    out = tmp_path / "out"
    assert await export_folder(configs, out, app_id=None) == Exported(unknown_files=[], skipped=[])
    files = {path.relative_to(out).as_posix() for path in out.rglob("*.yaml")}
    assert files == {path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml")}
    assert set((await import_configs(configs, out)).values()) == {"unchanged"}
    assert api_key(configs) == "sk-from-env"


async def test_exported_files_contain_no_secrets_and_state_this(configs, folder, tmp_path):
    await import_configs(configs, folder)
    await export_folder(configs, tmp_path / "out", app_id="default")
    text = (tmp_path / "out" / ACCOUNT).read_text()
    assert "not exported: api_key." in text
    assert all("sk-from-env" not in path.read_text() for path in (tmp_path / "out").rglob("*.yaml"))


async def test_a_secret_that_a_file_leaves_out_is_not_kept_for_another_address(configs, folder):
    await import_configs(configs, folder)
    write(folder, ACCOUNT, "platform: vendor_b_llm\nbase_url: https://there.example\n")
    with pytest.raises(InvalidParameter) as refused:
        await import_configs(configs, folder)
    assert refused.value.what == f"{ACCOUNT}: api_key must be given again, because base_url has changed"
    write(folder, ACCOUNT, "platform: vendor_b_llm\nbase_url: https://there.example\napi_key: {env: VENDOR_KEY}\n")
    assert (await import_configs(configs, folder))["default/vendor_accounts/main"] == "changed base_url"


async def test_lists_of_keys_keep_their_secrets_through_a_round_trip(configs, folder, tmp_path):
    keys = "sign_keys:\n- {id: a, key: {env: VENDOR_KEY}}\n- {id: b, key: {env: VENDOR_KEY}}\n"
    write(folder, "default/auth/default.yaml", keys)
    await import_configs(configs, folder)
    out = tmp_path / "out"
    await export_folder(configs, out, app_id="default")
    auth = (out / "default/auth/default.yaml").read_text()
    assert "not exported: sign_keys[0].key, sign_keys[1].key." in auth
    assert set((await import_configs(configs, out)).values()) == {"unchanged"}


async def test_free_options_that_look_like_a_secret_are_kept_like_one(configs, folder):
    options = "account: main\noptions: {extra: {style: {secret: true}}}\n"
    write(folder, "default/speech/s.yaml", options)
    await import_configs(configs, folder)
    write(folder, "default/speech/s.yaml", "account: main\noptions: {extra: {}}\n")
    assert (await import_configs(configs, folder))["default/speech/s"] == "unchanged"


async def test_a_file_that_belongs_to_no_config_is_reported(configs, folder, tmp_path):
    await import_configs(configs, folder)
    out = tmp_path / "out"
    await export_folder(configs, out, app_id="default")
    await configs.delete(ConfigKey("default", "speech", "s"), author="ada", origin=COMMAND)
    exported = await export_folder(configs, out, app_id="default")
    assert exported.unknown_files == [out / "default/speech/s.yaml"]


async def test_a_dry_run_reports_changes_and_writes_nothing(configs, folder):
    assert set((await import_configs(configs, folder, dry_run=True)).values()) == {"added"}
    assert await configs.overview() == []


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("default/speech/bad.yaml", "voice: x\n", "default/speech/bad.yaml: account is required"),
        (
            "default/speech/bad.yaml",
            "account: [",
            "bad.yaml: line 2, column 1: while parsing a flow node",
        ),
        ("default/speech/bad.yaml", "- a", "default/speech/bad.yaml: value must be an object"),
        ("default/speech/bad.yaml", "account: a\nwhat: 1", "default/speech/bad.yaml: what is not a field"),
        (
            "default/speech/bad.yaml",
            "account: !!python/name:os.system",
            "bad.yaml: line 1, column 10: could not",
        ),
        ("default/speech/bad.yaml", 'account: "\\0"', "default/speech/bad.yaml: body must not contain"),
        ("default/speech/bad.yaml", "account: {env: VENDOR_KEY}", "default/speech/bad.yaml: account must be a"),
        (
            "default/vendor_accounts/b.yaml",
            "platform: p\napi_key: {env: NOT_THERE}",
            "b.yaml: NOT_THERE is not set",
        ),
        ("default/speech/.yaml/x.yaml", "account: a", None),
        ("default/speech/b b.yaml", "account: a", "default/speech/b b.yaml: name must be"),
        ("default/poetry/bad.yaml", "a: 1", "default/poetry/bad.yaml: kind poetry does not exist"),
        ("default/speech/deep/bad.yaml", "account: a", "is not named <app>/<kind>/<name>.yaml"),
        ("default/speech/bad.json", "{}", "is not named <app>/<kind>/<name>.yaml"),
        ("two/speech/bad.yaml", "account: a", "two/speech/bad.yaml: app two does not exist"),
    ],
)
async def test_nothing_is_written_if_one_file_is_invalid(configs, folder, name, text, what):
    write(folder, name, text)
    if what is None:
        assert len(await import_configs(configs, folder)) == 4, "hidden folders are passed over"
        return
    with pytest.raises(ServiceError) as caught:
        await import_configs(configs, folder)
    assert what in str(caught.value)
    assert await configs.overview() == []


async def test_nothing_outside_of_the_folder_is_read_or_written(configs, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    write(outside, "x.yaml", "account: a\n")
    await import_configs(configs, folder)
    (folder / "default/speech/link.yaml").symlink_to(outside / "x.yaml")
    with pytest.raises(ServiceError, match=r"link\.yaml is a symbolic link"):
        await import_configs(configs, folder)
    out = tmp_path / "out"
    (out / "default").mkdir(parents=True)
    (out / "default/speech").symlink_to(outside)
    with pytest.raises(ServiceError, match="is behind a symbolic link"):
        await export_folder(configs, out, app_id="default")
    assert [path.name for path in outside.iterdir()] == ["x.yaml"]


async def test_a_seed_does_not_change_what_another_author_wrote_or_deleted(configs, folder):
    await import_configs(configs, folder, author="seed", keep_edited_by_others=True)
    speech, talk = ConfigKey("default", "speech", "s"), ConfigKey("default", "conversation", "talk")
    await configs.put(*speech, {"account": "main", "voice": "mine"}, author="ada", origin=COMMAND)
    await configs.delete(talk, author="ada", origin=COMMAND)
    write(folder, "default/apps/default.yaml", "title: Second\n")
    assert await import_configs(configs, folder, author="seed", keep_edited_by_others=True) == {
        "default/apps/default": "changed title",
        "default/vendor_accounts/main": "unchanged",
        "default/speech/s": "kept",
        "default/conversation/talk": "kept",
    }
    assert configs.get(SPEECH, "default", "s").value.voice == "mine"


async def test_only_the_selected_configs_are_imported(configs, folder):
    write(folder, "two/apps/default.yaml", "")
    changes = await import_configs(configs, folder, only=lambda key: key.app_id == "two")
    assert changes == {"two/apps/default": "added"}


async def command(settings: Settings, *args: str) -> tuple[int, str, str]:
    """Run `python -m app config …`. Return the exit code, standard output and standard error."""
    env = {
        **core_packages(),
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "PARLEY_REDIS_PREFIX": settings.redis_prefix,
        "PARLEY_MASTER_KEY": settings.master_key.get_secret_value(),
        "PARLEY_ADMIN_TOKEN": settings.admin_token.get_secret_value(),
        "PARLEY_DATA_DIR": str(settings.data_dir),
        "PARLEY_ENV": "development",
        **ENV,
    }
    return await run("app", "config", *args, env=env)


async def test_the_command_imports_shows_and_exports(settings, folder, tmp_path):
    code, out, _ = await command(settings, "import", str(folder), "--dry-run")
    assert (code, out.splitlines()[0], out.splitlines()[-1]) == (
        0,
        "added      default/apps/default",
        "nothing was written",
    )
    await command(settings, "import", str(folder), "--author", "bob")
    write(folder, "default/speech/s.yaml", "account: main\nspeed: 2\n")
    _, out, _ = await command(settings, "import", str(folder))
    assert out.splitlines() == [
        "unchanged  default/apps/default",
        "unchanged  default/vendor_accounts/main",
        "changed    default/speech/s: speed, options",
        "unchanged  default/conversation/talk",
    ]
    code, _, _ = await command(settings, "export", str(tmp_path / "out"), "--app", "default")
    assert code == 0
    assert (tmp_path / "out/default/speech/s.yaml").read_text() == "account: main\nspeed: 2.0\n"


async def test_configs_of_an_app_that_was_deleted_are_skipped_and_reported(configs, folder, settings, tmp_path):
    write(folder, "two/apps/default.yaml", "title: Two\n")
    write(folder, "two/auth/default.yaml", "anonymous_login: false\n")
    await import_configs(configs, folder)
    await configs.delete(ConfigKey("two", "apps", "default"), author="ada", origin=COMMAND)
    out = tmp_path / "out"
    code, _, errors = await command(settings, "export", str(out))
    assert (code, errors) == (0, "two/auth/default is skipped: app two does not exist\n")
    assert set((await import_configs(configs, out)).values()) == {"unchanged"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("account: main\noptions: &a\n  self: *a\n", r"line 2: anchors .* and aliases .* are not supported"),
        ("voice: *nothing\n", r"line 1: anchors"),
        ("a: &a [x, x]\n", r"line 1: anchors"),
        ("account: main\noptions: {<<: [{a: 1}, {b: 2}]}\n", r"line 2: merge keys .* are not supported"),
        ("account: main\nspeed: 1\naccount: other\n", r"line 3: account is given twice"),
        ("#" * 1024 * 1024 + "\n", r"it is larger than 1048576 bytes"),
        ("options: " + "[" * 20_000, r"it is nested too deeply"),
        ("speed: " + "9" * 5000, r"integer string conversion"),
        ("voice: 2026-13-45\n", r"month must be in 1..12"),
    ],
)
async def test_unsupported_or_invalid_yaml_is_refused_in_one_line(configs, folder, text, what):
    write(folder, "default/speech/bad.yaml", text)
    with pytest.raises(InvalidParameter, match=rf"default/speech/bad\.yaml: .*{what}") as refused:
        await import_configs(configs, folder)
    assert "\n" not in str(refused.value)


async def test_errors_of_the_command_are_one_line(settings, folder):
    write(folder, "default/speech/bad.yaml", "voice: x\n")
    code, out, errors = await command(settings, "import", str(folder))
    assert (code, out) == (2, "")
    assert errors == "parley: invalid_parameter: default/speech/bad.yaml: account is required\n"


async def test_warnings_of_an_import_or_export_are_printed_on_standard_error(settings, folder, tmp_path):
    write(folder, "default/conversation/talk.yaml", "chat: {account: man}\nspeech: s\nrecognition: ears\n")
    reported = (
        "warning: default/conversation/talk: chat.account names vendor_accounts man, which does not exist\n"
        "warning: default/conversation/talk: recognition names recognition ears, which does not exist\n"
    )
    for _ in range(2):  # Unchanged configs have warnings too.
        code, _, errors = await command(settings, "import", str(folder))
        assert (code, errors) == (0, reported)
    code, _, errors = await command(settings, "export", str(tmp_path / "out"))
    assert (code, errors) == (0, reported)


async def test_strict_import_refuses_files_with_warnings_also_if_they_are_unchanged(settings, configs, folder):
    write(folder, "default/conversation/talk.yaml", "chat: {account: man}\n")
    refusal = "default/conversation/talk.yaml: chat.account names vendor_accounts man, which does not exist"
    with pytest.raises(InvalidParameter, match=re.escape(refusal)):
        await import_configs(configs, folder, strict=True)
    assert await configs.overview() == []
    await import_configs(configs, folder)
    assert await command(settings, "import", str(folder), "--strict") == (
        2,
        "",
        f"parley: invalid_parameter: {refusal}\n",
    )


async def test_an_import_refuses_an_option_that_the_platform_does_not_have(settings, folder):
    write(folder, "default/speech/s.yaml", "account: main\noptions: {style: calm}\n")
    code, out, errors = await command(settings, "import", str(folder))
    assert (code, out) == (2, "")
    assert errors == "parley: invalid_parameter: default/speech/s.yaml: options.style is not a field\n"
