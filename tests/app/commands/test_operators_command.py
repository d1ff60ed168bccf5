"""The command `operators` manages the operators of the admin API."""

import re

from tests.app.commands.ended import ended
from tests.app.operator_calls import OPERATORS, call
from tests.running.servers import Server


async def operators(server: Server, *arguments: str) -> tuple[int, str, str]:
    """Run `python -m app operators …` without a Valkey. Return the exit code, standard output and error."""
    return await ended(server.services.settings, {"REDIS_URL": "redis://127.0.0.1:1"}, "operators", *arguments)


async def test_commands_manage_operators(server: Server) -> None:
    code, out, _ = await operators(server, "add", "ada", "--role", "admin", "--days", "1", "--reason", "the first")
    token = out.strip()
    assert (code, out) == (0, f"{token}\n")
    assert (await call(server, "GET", OPERATORS, token=token))[0] == 200

    _, out, _ = await operators(server, "change", "ada", "--role", "viewer")
    assert re.fullmatch(r"ada  viewer  expires 20\S+Z  used 20\S+Z\n", out)
    _, out, _ = await operators(server, "change", "ada", "--no-expiry")
    assert re.fullmatch(r"ada  viewer  expires never  used 20\S+Z\n", out)
    assert (await operators(server, "list"))[1] == out
    assert (await call(server, "GET", OPERATORS, token=token))[0] == 403

    _, out, _ = await operators(server, "rotate", "ada")
    assert (await call(server, "GET", "/admin/api/kinds", token=token))[0] == 401
    assert (await call(server, "GET", "/admin/api/kinds", token=out.strip()))[0] == 200
    assert await operators(server, "remove", "ada") == (0, "", "")
    assert (await call(server, "GET", "/admin/api/kinds", token=out.strip()))[0] == 401
    absent = await operators(server, "rotate", "ada")
    assert absent == (2, "", "parley: item_not_found: operator ada does not exist\n")

    _, answer = await call(server, "GET", "/admin/api/audit?kind=operator")
    changes = [(row["action"].removeprefix("operator."), row["actor"], row["reason"]) for row in answer["changes"]]
    assert changes[::-1] == [
        ("add", "command", "the first"),
        ("change", "command", ""),
        ("change", "command", ""),
        ("rotate", "command", ""),
        ("remove", "command", ""),
    ]
