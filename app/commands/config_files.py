"""Export and import of configs as a folder of YAML files named `<app>/<kind>/<name>.yaml`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import SecretStr

from storage.configs.edits import Change, Edit
from storage.configs.kinds import KINDS
from storage.configs.kinds.apps import APPS
from storage.configs.rows import ConfigKey, Revision
from storage.configs.rules import Fault
from storage.configs.secrets import remove_secrets
from storage.configs.store import ConfigStore
from storage.operators.audit import COMMAND
from streams.wire.codec import dumps, loads_request
from streams.wire.errors import InvalidParameter, ServiceError, StoreError, listed

_SECRETS_COMMENT = """\
# Secrets are not exported: {paths}.
# To set one from the environment, write {{env: NAME}}. A secret that is absent keeps its stored value.
"""

_MAX_DEPTH = 100
_MERGE = "tag:yaml.org,2002:merge"
_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The content of a file. `value` may hold `{"env": NAME}` instead of a secret."""

    path: Path
    key: ConfigKey
    value: Any


async def import_folder(
    configs: ConfigStore,
    folder: Path,
    *,
    author: str,
    env: Mapping[str, str],
    only: Callable[[ConfigKey], bool] | None = None,
    app_id: str | None = None,
    keep_edited_by_others: bool = False,
    strict: bool = False,
    dry_run: bool = False,
) -> list[Change]:
    """Write all configs in `folder` that differ from the active ones, in one transaction. Return a change for each.

    `app_id` replaces the app that the files are named after.
    With `keep_edited_by_others`, configs whose newest revision has another author are kept, including deleted ones.
    `strict` refuses files with warnings.
    """
    files = [file for file in read_folder(folder) if only is None or only(file.key)]
    if app_id is not None:
        files = [replace(file, key=file.key._replace(app_id=app_id)) for file in files]
    async with configs.editing(author=author, origin=COMMAND, dry_run=dry_run) as edit:
        return [
            await _imported(edit, file, env, keep_edited_by_others=keep_edited_by_others, strict=strict)
            for file in files
        ]


@dataclass(frozen=True, slots=True)
class Exported:
    unknown_files: list[Path]
    """YAML files in the folders of the exported apps that belong to no config."""
    skipped: list[ConfigKey]
    """Configs that were not exported because their app does not exist and an import would refuse them."""
    warnings: list[tuple[ConfigKey, Fault]] = field(default_factory=list)
    """Warnings about exported configs."""


async def export_folder(configs: ConfigStore, folder: Path, *, app_id: str | None) -> Exported:
    """Write a file for each active config, of one app or of all apps."""
    revisions = await configs.overview(app_id=app_id)
    apps = {revision.key.app_id for revision in revisions if revision.key.kind == APPS.name}
    skipped = [revision.key for revision in revisions if revision.key.app_id not in apps]
    exported = [revision for revision in revisions if revision.key.app_id in apps]
    unknown_files = write_folder(exported, folder)
    warnings = [(revision.key, warning) for revision in exported for warning in configs.warnings(revision.key)]
    return Exported(unknown_files, skipped, warnings)


def read_folder(folder: Path) -> list[ConfigFile]:
    """Read the files in `folder`. They are ordered by kind, so that configs come after those that they refer to."""
    if not folder.is_dir():
        raise InvalidParameter(f"{folder} is not a folder")
    files = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue
        if path.is_symlink():
            raise InvalidParameter(f"{inside} is a symbolic link")
        if not path.is_dir():
            files.append(_config_file(path, inside))
    order = {kind: position for position, kind in enumerate(KINDS)}
    return sorted(files, key=lambda file: (order[file.key.kind], file.key))


def write_folder(revisions: list[Revision], folder: Path) -> list[Path]:
    """Write the revisions to files. Return the other YAML files in the folders of their apps."""
    folder.mkdir(parents=True, exist_ok=True)
    root = folder.resolve()
    written = set()
    for revision in revisions:
        app_id, kind, name = revision.key
        path = root / app_id / kind / f"{name}.yaml"
        if path.resolve() != path:
            raise InvalidParameter(f"{path} is behind a symbolic link")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(revision), encoding="utf-8")
        written.add(path)
    apps = {revision.key.app_id for revision in revisions}
    return sorted(path for app_id in apps for path in (root / app_id).rglob("*.yaml") if path not in written)


def _config_file(path: Path, inside: Path) -> ConfigFile:
    if len(inside.parts) != len(ConfigKey._fields) or inside.suffix != ".yaml":
        raise InvalidParameter(f"{inside} is not named <app>/<kind>/<name>.yaml")
    app_id, kind, _ = inside.parts
    if kind not in KINDS:
        raise InvalidParameter(f"{inside}: kind {kind} does not exist")
    try:
        value = _loaded(path)
        # Convert the value to JSON and back, because YAML has types that JSON and so the database cannot hold.
        value = loads_request(dumps({} if value is None else value))
    except yaml.YAMLError as error:
        raise InvalidParameter(f"{inside}: {_yaml_fault(error)}") from None
    except (ValueError, TypeError) as error:
        raise InvalidParameter(f"{inside}: {' '.join(str(error).split())}") from None
    except InvalidParameter as error:
        error.prefix(str(inside))
        raise
    return ConfigFile(inside, ConfigKey(app_id, kind, inside.stem), value)


def _yaml_fault(error: yaml.YAMLError) -> str:
    """Return where a file is not YAML, and why, on one line."""
    mark = getattr(error, "problem_mark", None)
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return " ".join(str(error).split())
    problem = ", ".join(filter(None, (error.context, error.problem)))
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _loaded(path: Path) -> Any:
    with path.open("rb") as file:
        raw = file.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise InvalidParameter(f"it is larger than {_MAX_BYTES} bytes")
    text = raw.decode()
    _check_events(text)
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - derived from CSafeLoader


def _check_events(text: str) -> None:
    """Refuse a file before its value is built: with anchors and aliases, a small one could have a huge value."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if getattr(event, "anchor", None) is not None:
            assert event.start_mark is not None, "the parser marks where events start"
            line = event.start_mark.line + 1
            raise InvalidParameter(f"line {line}: anchors (`&name`) and aliases (`*name`) are not supported")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise InvalidParameter("it is nested too deeply")


class _Loader(yaml.CSafeLoader):
    """Refuses merge keys, and keys that are given twice, because they silently override other values."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        names = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            line = key.start_mark.line + 1
            if key.tag == _MERGE:
                raise InvalidParameter(f"line {line}: merge keys (`<<`) are not supported")
            if key.value in names:
                raise InvalidParameter(f"line {line}: {listed([key.value])} is given twice")
            names.add(key.value)
        super().flatten_mapping(node)


async def _imported(
    edit: Edit, file: ConfigFile, env: Mapping[str, str], *, keep_edited_by_others: bool, strict: bool
) -> Change:
    try:
        value = _with_env(file.value, env)
        return await edit.converge(file.key, value, keep_edited_by_others=keep_edited_by_others, strict=strict)
    except StoreError:
        raise
    except ServiceError as error:
        error.prefix(str(file.path))
        raise


def _with_env(value: Any, env: Mapping[str, str]) -> Any:
    """Return `value` with each `{"env": NAME}` replaced by that variable's value, as a secret."""
    if isinstance(value, dict):
        if value.keys() == {"env"} and isinstance(value["env"], str):
            if not env.get(value["env"]):
                raise InvalidParameter(f"{value['env']} is not set in the environment")
            return SecretStr(env[value["env"]])
        return {key: _with_env(item, env) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_env(item, env) for item in value]
    return value


def _text(revision: Revision) -> str:
    value, secrets = remove_secrets(revision)
    text = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, width=100)
    return _SECRETS_COMMENT.format(paths=", ".join(secrets)) + text if secrets else text


class _Dumper(yaml.SafeDumper):
    """Writes multi-line texts, such as prompts, as literal blocks."""


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text_node)
