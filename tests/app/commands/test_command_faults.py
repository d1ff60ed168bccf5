"""A command that fails prints one line that says what is wrong, and its exit code says if it may succeed later."""

import socket
from pathlib import Path

from app.settings import Settings
from tests.app.commands.ended import ended

UNREACHABLE = {"DATABASE_URL": "postgresql://ada@127.0.0.1:1/parley"}
REFUSED = (
    "database: the database is not reachable: connection refused"
    " (DATABASE_URL: 127.0.0.1:1, database parley, user ada)"
)
WITH_SLASH = {"DATABASE_URL": "postgresql://ada:pass/word@127.0.0.1/parley"}
NO_PORT = {"DATABASE_URL": "postgresql://127.0.0.1:port/parley"}
NO_URL = (
    "DATABASE_URL must be a URL such as postgresql://user:password@host:5432;"
    " write special characters of the password as %XX"
)
WRONG_OPTION = {"DATABASE_URL": "postgresql://127.0.0.1:1/parley?sslmode=off"}
WRONG_VALUE = {"REDIS_URL": "redis://127.0.0.1:1/0?socket_timeout=soon"}
NO_CREDENTIALS = {"S3_BUCKET": "files", "AWS_EC2_METADATA_DISABLED": "true"}
FAULTS: list[tuple[dict[str, str], str, str]] = [
    (UNREACHABLE, "serve", REFUSED),
    (UNREACHABLE, "worker", REFUSED),
    (UNREACHABLE, "migrate", REFUSED),
    (UNREACHABLE, "operators list", REFUSED),
    (UNREACHABLE, "users make 1", REFUSED),
    (UNREACHABLE, "config export /none", REFUSED),
    (WITH_SLASH, "migrate", "DATABASE_URL: the password seems to have a special character that is not encoded: "),
    (NO_PORT, "operators list", NO_URL),
    (WRONG_OPTION, "migrate", "database: DATABASE_URL cannot be used: `sslmode` parameter must be one of"),
    (WRONG_VALUE, "users make 1", "redis_service: REDIS_URL cannot be used: Invalid value for 'socket_timeout'"),
    (NO_CREDENTIALS, "serve", "internal: S3_BUCKET is set, but no credentials: "),
    ({}, "users make 1 --app none", "item_not_found: app none does not exist"),
    ({}, "config export /none --app none", "item_not_found: app none does not exist"),
    ({}, "config import {folder} --app none", "invalid_parameter: {folder} has no file of app none"),
    ({}, "config import /none", "invalid_parameter: /none is not a folder"),
    ({}, "operators remove nobody", "item_not_found: operator nobody does not exist"),
    ({}, "sign POST / --key k --body /none", "/none: no such file or directory"),
    ({}, "token make --key /none --kid k --alg EdDSA", "cannot read the key file /none: no such file or directory"),
]
"""Variables of the environment, a command, and the beginning of its error."""


async def test_each_command_names_the_fault_in_one_line_and_ends_with_its_code(
    settings: Settings, listener: socket.socket, tmp_path: Path
) -> None:
    listener.close()  # `serve` listens on its port before it opens the stores.
    (tmp_path / "default/apps").mkdir(parents=True)
    (tmp_path / "default/apps/default.yaml").write_text("{}")
    for env, command, error in FAULTS:
        code, _, errors = await ended(settings, env, *command.format(folder=tmp_path).split())
        assert (code, errors.count("\n")) == (1 if error == REFUSED else 2, 1), (command, errors)
        assert errors.startswith(f"parley: {error.format(folder=tmp_path)}"), (command, errors)
