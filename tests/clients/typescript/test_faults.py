"""Each fault of a vendor ends in a clear error, or in the answer of the next strategy."""

from typing import Any

import pytest

from tests.clients.faults import ANSWER, check_outcome, fault_cases, faulty_strategies
from tests.clients.typescript.program import ClientError, Program
from tests.running.servers import Server
from vendors.sandbox.server import Running


@pytest.mark.parametrize("case", fault_cases())
async def test_a_fault_is_an_error_or_the_next_strategy_answers(
    user: Program, server: Server, sandbox: Running, case: dict[str, Any]
) -> None:
    await faulty_strategies(server, sandbox, case)
    await turn(user, case, "alone", "faulty")
    answer = await turn(user, case, "followed", "faulty", "other")
    assert answer == ANSWER or case["followed"] != "stop" or case["alone"] == "stop"


async def turn(user: Program, case: dict[str, Any], which: str, *strategies: str) -> str:
    """Converse, check how the turn ends, and return its text."""
    options = {"strategies": strategies, "text": "Hello", "languageCode": "en-US"}
    error, finish_reason = None, None
    try:
        finish_reason = (await user.read(options=options).ended())["end"]["finish_reason"]
    except ClientError as raised:
        error = {**raised.error, "error_type": raised.error["errorType"]}
    check_outcome(case, which, finish_reason=finish_reason, error=error)
    text: str = await user.do("text")
    return text
