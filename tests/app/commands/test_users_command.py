"""Users that the command creates are ordinary users."""

from pathlib import Path

import pytest

from app.__main__ import main
from tests.app.commands.ended import ended
from tests.running.servers import ADMIN_TOKEN, Server


async def users(server: Server, *arguments: str) -> tuple[int, str, str]:
    """Run `python -m app users …`. Return the exit code, standard output and error."""
    return await ended(server.services.settings, {}, "users", *arguments)


async def test_every_user_has_a_separate_session(server: Server):
    code, out, _ = await users(server, "make", "3")

    assert code == 0
    made = dict(line.split() for line in out.splitlines())
    assert len(made) == len(set(made.values())) == 3
    for uid, token in made.items():
        headers = {"X-Service-Session-Token": token}
        async with server.http.get(f"{server.url}/bp/user/me", headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            assert (await answer.json())["user"]["uid"] == uid


async def test_only_the_owner_can_read_the_file_of_tokens(server: Server, tmp_path: Path):
    path = tmp_path / "users"
    path.write_text("what was there")
    path.chmod(0o644)

    code, out, _ = await users(server, "make", "600", "--app", "default", "--out", str(path))

    assert (code, out) == (0, "")
    assert path.stat().st_mode & 0o777 == 0o600
    assert len({line.split()[1] for line in path.read_text().splitlines()}) == 600
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with server.http.get(f"{server.url}/admin/api/audit?action=users.make", headers=headers) as answer:
        changes = (await answer.json())["changes"]
    assert [(row["actor"], row["app"], row["after"]) for row in changes] == [
        ("command", "default", {"count": 100}),
        ("command", "default", {"count": 500}),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("make", "1", "--app", "none"), "app none does not exist"),
        (("make", "1", "--out", "/none/users"), "/none/users: no such file or directory"),
    ],
)
async def test_users_that_cannot_be_created_are_reported(server: Server, arguments, message):
    found, out, errors = await users(server, *arguments)

    assert (found, out) == (2, "")
    assert message in errors


@pytest.mark.parametrize("count", ["0", "-1", "100001", "many"])
def test_number_of_users_is_checked_before_anything_is_opened(count: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["users", "make", "--", count])

    assert ended.value.code == 2
    assert "must be from 1 to 100000" in capsys.readouterr().err
