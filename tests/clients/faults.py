"""Strategies for the cases of `clients/cases/faults.json`."""

from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.sandbox_accounts import account
from tests.clients.cases import cases
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

ANSWER = "The other strategy answers."
_WAITS = {"first_output_s": 2, "between_s": 2}
_QUICK = {"an error of the server", "an error within the answer", "a cut after which the answer starts again"}
"""An error before the answer, an error in it, and an answer that starts again. The others are a soak."""


def fault_cases() -> list[Any]:
    """Return the cases as parameters of a test."""
    return [
        pytest.param(case, id=case["name"], marks=[] if case["name"] in _QUICK else pytest.mark.soak)
        for case in cases("faults")
    ]


async def faulty_strategies(server: Server, sandbox: Running, case: dict[str, Any]) -> None:
    """Create a strategy `faulty`, whose model has the fault of the case, and `other`, which answers."""
    await account(server, sandbox, "faulty", "vendor_b_llm", key_of(**case["fault"]))
    await account(server, sandbox, "other", "vendor_b_llm", key_of(text=ANSWER))
    on_break = {"on_break": case["on_break"]} if "on_break" in case else {}
    faulty = {"chat": {"account": "faulty", "model": "gpt-4o-mini", "waits": _WAITS}, **on_break}
    other = {"chat": {"account": "other", "model": "gpt-4o-mini"}}
    for name, value in (("faulty", faulty), ("other", other)):
        await server.services.configs.put("default", "conversation", name, value, author="test", origin=COMMAND)


def check_outcome(
    case: dict[str, Any], which: str, *, finish_reason: str | None, error: dict[str, Any] | None
) -> None:
    """Check how a turn has ended. An error says what has failed, and whether repeating the turn may help."""
    expected = case[which]
    if error is None:
        assert finish_reason == expected
        return
    assert (error["error_type"], error["retryable"]) == (expected, case["retryable"])
    assert error["message"].startswith(f"{expected}: ")
