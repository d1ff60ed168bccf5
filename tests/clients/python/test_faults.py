"""Each fault of a vendor ends in a clear error, or in the answer of the next strategy."""

from typing import Any

import pytest

from parley_client import ParleyClient, ParleyError
from tests.app.ai.conftest import sandbox
from tests.clients.cases import cases
from tests.clients.faults import ANSWER, check_outcome, fault_cases, faulty_strategies
from tests.running.servers import Server
from vendors.sandbox.faults import Fault
from vendors.sandbox.server import Running

__all__ = ["sandbox"]


def test_each_fault_has_a_case() -> None:
    assert {case["fault"]["fault"] for case in cases("faults")} == {*Fault} - {Fault.HUGE_ANSWER}, (
        "which is no fault of an answer in parts"
    )


@pytest.mark.parametrize("case", fault_cases())
async def test_a_fault_is_an_error_or_the_next_strategy_answers(
    client: ParleyClient, server: Server, sandbox: Running, case: dict[str, Any]
) -> None:
    await faulty_strategies(server, sandbox, case)
    await turn(client, case, "alone", "faulty")
    answer = await turn(client, case, "followed", "faulty", "other")
    assert answer == ANSWER or case["followed"] != "stop" or case["alone"] == "stop"


async def turn(client: ParleyClient, case: dict[str, Any], which: str, *strategies: str) -> str:
    """Converse, check how the turn ends, and return its text."""
    asked = client.converse(strategies=strategies, text="Hello", language_code="en-US")
    error, finish_reason = None, None
    try:
        finish_reason = (await asked.finish()).finish_reason
    except ParleyError as raised:
        error = {"error_type": raised.error_type, "message": raised.message, "retryable": raised.retryable}
    check_outcome(case, which, finish_reason=finish_reason, error=error)
    return asked.text
