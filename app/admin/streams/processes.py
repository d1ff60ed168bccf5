"""Questions to all processes about their streams."""

from typing import Any, NamedTuple

from app.services import Services
from storage.processes.process_rpc import Message
from streams.wire.errors import StoreError

WITHIN_S = 2.0
"""How long to wait for the other processes."""


class Answers(NamedTuple):
    """What the other processes have answered."""

    found: dict[str, Any]
    """The answers by process."""
    silent: list[str]
    """The processes that did not answer in time."""
    complete: bool
    """Whether all processes were asked and have answered. Without any store, the others are not known."""


async def ask_others(services: Services, message: Message, *, process: str | None = None) -> Answers:
    """Ask all other processes, or only `process`."""
    try:
        others = await services.heartbeat.others()
    except StoreError:
        return Answers({}, [], complete=False)
    if process is not None and process not in {services.heartbeat.process, *others}:
        return Answers({}, [process], complete=False)  # It has ended, or was never one.
    asked = [other for other in others if process in {None, other}]
    answers = await services.relay.ask_all(asked, message, within_s=WITHIN_S)
    found = {name: answer["found"] for name, answer in answers.items() if answer is not None}
    silent = sorted(name for name, answer in answers.items() if answer is None)
    return Answers(found, silent, complete=not silent)
