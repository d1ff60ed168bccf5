"""What needs the attention of an operator, the worst first, for the overview."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from app.observing.stored_figures import Figures
from app.services import Services
from storage.accounts.password_resets import SendReset
from storage.availability import stores_away
from storage.mail.mail import SendMail
from streams.wire.model import Model

_NAMES = 5
_EMAILS = frozenset({SendMail.task, SendReset.task})

What = Literal[
    "store",
    "worker",
    "silent_process",
    "versions",
    "config",
    "breaker",
    "vendor",
    "mismatch",
    "webhook",
    "mail",
    "job",
    "sink",
]


class AttentionRow(Model):
    what: What
    """`store`: a process cannot use a store. `worker`: no worker runs, so no job does. `silent_process`: a process
    has neither ended nor reported for 30 s. `versions`: processes have different versions. `config`: a config
    cannot be used. `breaker`: the circuit breaker of a vendor account is open. `vendor`: a vendor
    has failed in nearly all attempts of the last five minutes, and in at least three. `mismatch`: a difference
    with a payment platform is not settled. `webhook`: the last attempt to process a webhook failed. `mail`: an
    email is held. `job`: another job is held. `sink`: a sink has not accepted events."""
    count: int
    """How many there are; of webhooks and mismatches, at most 1000 are counted."""
    names: list[str]
    """The first of them, such as `default/mail/welcome` for a config, or `llm/vendor` for a vendor."""


def attention_of(
    services: Services, stored: Figures, processes: Sequence[Mapping[str, Any]], *, failing: Iterable[str]
) -> list[AttentionRow]:
    """Return what needs attention.

    `processes` are the figures that the server processes have published, `failing` the vendors that fail now.
    """
    found = _found(services, stored, processes, failing)
    return [AttentionRow(what=what, count=count, names=names[:_NAMES]) for what, count, names in found if count]


def _found(
    services: Services, stored: Figures, processes: Sequence[Mapping[str, Any]], failing: Iterable[str]
) -> Iterator[tuple[What, int, list[str]]]:
    yield _each("store", {*stores_away(), *_all_of(processes, "stores_away")})
    yield "worker", int(stored.workers == 0), []
    yield _each("silent_process", stored.silent)
    versions = Counter(process["version"] for process in processes)
    yield "versions", len(versions) if len(versions) > 1 else 0, sorted(versions)
    yield _each("config", ["/".join(key) for key in services.configs.broken()])
    yield _each("breaker", {*_all_of(processes, "breakers")})
    yield _each("vendor", failing)
    yield "mismatch", stored.mismatches, []
    yield "webhook", stored.failed_webhooks, []
    held = {job.task: job.count for job in stored.jobs if job.status == "failed"}
    mails = [task for task in held if task in _EMAILS]
    yield "mail", sum(held[task] for task in mails), mails
    others = sorted(held.keys() - _EMAILS, key=lambda task: (-held[task], task))
    yield "job", sum(held[task] for task in others), others
    yield "sink", sum(stored.dead_events.values()), ["/".join(sink) for sink in stored.dead_events]


def _each(what: What, names: Iterable[str]) -> tuple[What, int, list[str]]:
    shown = sorted(names)
    return what, len(shown), shown


def _all_of(processes: Sequence[Mapping[str, Any]], field: str) -> Iterator[str]:
    """Yield the names in a field of all processes. Those of the previous version may lack it."""
    for process in processes:
        yield from process.get(field, ())
